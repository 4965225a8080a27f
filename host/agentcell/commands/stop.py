"""`agentcell stop`."""

import click


@click.command
@click.argument("directory", metavar="DIR")
def stop(directory: str) -> None:
    """End a running batch as Ctrl-C in its terminal would, also one that a script has in the background.

    Its running sessions may finish within its --grace, and the rest stays pending. Do it again to end them at once, and
    a third time to kill them. It does not wait for the end. Exit code 1 when no batch runs in DIR.
    """
    from pathlib import Path

    from agentcell.batch.halt import NotInterruptedError, interrupt
    from agentcell.commands.no_batch import no_batch
    from agentcell.errors import RunDirectoryError
    from agentcell.terminal import one_line

    path, shown = Path(directory), one_line(directory)
    try:
        pid = interrupt(path)
    except RunDirectoryError as mistake:
        raise no_batch(path, mistake) from None
    except NotInterruptedError as reason:
        raise click.ClickException(f"{shown}: {reason}") from None
    except OSError as failure:
        raise click.ClickException(f"{failure.filename or shown} cannot be read: {failure.strerror}") from None
    click.echo(f"told process {pid} to stop; what runs may finish within its grace, and the rest stays pending")
    click.echo(f"see how it ends: agentcell status {shown}; end what runs at once: agentcell stop {shown}, again")

"""`agentcell status`."""

import click


@click.command
@click.argument("directory", metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
@click.option("--content", is_flag=True, help="Show what agents wrote, too.")
def status(directory: str, as_json: bool, content: bool) -> None:
    """Say what a batch has come to, from its run directory: while it runs, when it was cut, or when it is over.

    Nothing in DIR is changed, and a batch that runs is not disturbed.
    """
    import time
    from pathlib import Path

    from agentcell.batch.reading import read_batch
    from agentcell.commands.no_batch import no_batch
    from agentcell.commands.overview import print_json, print_reading
    from agentcell.errors import RunDirectoryError

    path = Path(directory)
    try:
        show = print_json if as_json else print_reading
        show(read_batch(path, time.time()), path, content=content)
    except RunDirectoryError as mistake:
        raise no_batch(path, mistake) from None
    except BrokenPipeError:
        raise
    except OSError as failure:
        raise click.ClickException(f"{failure.filename or path} cannot be read: {failure.strerror}") from None

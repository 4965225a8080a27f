"""`agentcell offline-model`."""

import click


@click.command("offline-model")
@click.option("--script", required=True, metavar="FILE", help="What the model answers, as YAML or JSON.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port; a free one if left out.")
def offline_model(script: str, port: int) -> None:
    """Play a scripted model on 127.0.0.1 until Ctrl-C.

    Its address is printed on stdout, the variables that point a session at it on stderr. What a script may say is in
    docs/offline.md.
    """
    from agentcell.offline import Endpoint, ScriptError, serve_forever

    def print_address(endpoint: Endpoint) -> None:
        click.echo(endpoint.url)
        for name, value in endpoint.environment().items():
            click.echo(f"export {name}={value}", err=True)

    try:
        serve_forever(script, port, print_address)
    except ScriptError as mistake:
        raise click.BadParameter(str(mistake), param_hint="--script") from None
    except OSError as taken:
        reason = f"{port} cannot be used: {taken.strerror}; leave it out to have a free one"
        raise click.BadParameter(reason, param_hint="--port") from None

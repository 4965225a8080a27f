"""`agentcell schema`."""

import click


@click.command
@click.argument("kind", type=click.Choice(["request", "event", "result", "serve-input", "serve-output"]))
def schema(kind: str) -> None:
    """Print the JSON Schema (2020-12) of a kind of message."""
    from agentcell_protocol.schema import KINDS, committed

    click.echo(committed(KINDS[KINDS.index(kind)]), nl=False)

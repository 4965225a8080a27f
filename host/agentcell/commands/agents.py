"""`agentcell agents`."""

import click


@click.command
@click.option("--agents-dir", metavar="DIR", help="Where further types are defined, as *.md files with front matter.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each type.")
@click.pass_context
def agents(context: click.Context, agents_dir: str | None, as_json: bool) -> None:
    """List the agent types, what they do and what they may use. Exit code 1 when a definition cannot be used."""
    import os

    from agentcell.agents import ListingError, known_agents
    from agentcell.commands.listing import print_lines, print_problems, print_table

    if agents_dir is not None and not os.path.isdir(agents_dir):  # noqa: PTH112 - pathlib raises for an overlong name
        remedy = "name the directory that holds the definitions of agent types"
        raise click.BadParameter(f"{agents_dir} is not a directory; {remedy}", param_hint="--agents-dir")
    try:
        listing = known_agents(agents_dir, os.environ)
    except ListingError as failure:
        raise click.ClickException(f"{failure}; agentcell doctor says what is wrong") from None
    show = print_lines if as_json else print_table
    show(listing.types)
    print_problems(listing.problems)
    context.exit(bool(listing.problems))

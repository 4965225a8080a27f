"""`agentcell doctor`."""

import click


@click.command
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each finding.")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Say whether sessions can run here, and what to do if not. Exit code 1 on a problem."""
    import os

    from agentcell import doctor as examination
    from agentcell.commands.report import print_lines, print_table

    show = print_lines if as_json else print_table
    findings = show(examination.examine(os.environ))
    context.exit(any(finding.grade == "problem" for finding in findings))

"""What `agentcell batch` is told on the command line is how the batch is run."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.host.batch.run_directory import begun
from tests.host.command_line import batch_line, run_command

from agentcell.batch.caps import Caps, MaxFailures
from agentcell.batch.settings import Settings
from agentcell.cli import agentcell
from agentcell.commands import batching
from agentcell.commands.batch_options import BatchOptions, batch_config, batch_defaults, batch_settings
from agentcell.commands.moment import moment
from agentcell.environment import with_cli_retries

CLI_RETRIES = next(iter(with_cli_retries({})))


def given(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> BatchOptions:
    """The options as the command understands them."""
    seen: list[BatchOptions] = []

    def run(options: BatchOptions) -> int:
        seen.append(options)
        return 0

    monkeypatch.setattr(batching, "run_in_foreground", run)
    shown = CliRunner().invoke(agentcell, ["batch", "rows.jsonl", *arguments])
    assert (shown.exit_code, shown.output) == (0, "")
    return seen[0]


def test_each_option_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = ["--retries", "5", "--max-cost-usd", "1.5", "--max-failures", "5%", "--min-free-mb", "7", "--grace", "9"]
    flags = ["--retry-failed", "--rerun-changed", "--wait-for-quota"]
    when = "2030-01-31T07:00"
    options = given(monkeypatch, *numbers, *flags, "--deadline", when, "-j", "3")
    assert replace(batch_settings(options), environment={}) == Settings(
        retries=5,
        retry_failed=True,
        rerun_changed=True,
        waits_for_quota=True,
        caps=Caps(1.5, MaxFailures(5.0, is_share=True), moment(when, 0.0)),
        min_free_mb=7.0,
        grace_seconds=9.0,
    )
    assert batch_config(options, batch_settings(options))["jobs"] == 3


def test_without_options_the_settings_are_those_of_any_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    options = given(monkeypatch)
    assert replace(batch_settings(options), environment={}) == Settings()
    assert (options.directory, batch_defaults(options)) == (Path("rows.run"), {})


def test_the_cells_get_what_is_named_and_the_cli_does_not_multiply_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NAMED", "UNNAMED"):
        monkeypatch.setenv(name, "here")
    monkeypatch.delenv(CLI_RETRIES, raising=False)
    options = given(monkeypatch, "--env", "GIVEN=too", "--pass-env", "NAMED")
    environment = batch_settings(options).environment
    names = ("NAMED", "UNNAMED", "GIVEN", CLI_RETRIES)
    assert [environment.get(name) for name in names] == ["here", None, "too", with_cli_retries({})[CLI_RETRIES]]
    assert CLI_RETRIES not in batch_settings(given(monkeypatch, "--retries", "0")).environment


def test_a_timeout_is_that_of_rows_that_have_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "defaults.yaml"
    file.write_text("limits: {idle_seconds: 4, max_execution_seconds: 5}\nmodel: m\n")
    options = given(monkeypatch, "--timeout", "6", "--defaults", str(file))
    assert batch_defaults(options) == {"model": "m", "limits": {"idle_seconds": 4, "max_execution_seconds": 6}}


def test_a_dry_run_of_a_new_batch_makes_no_directory(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "a", "agent_type": "coder", "project_dir": "/", "starting_message": "go"}\n')
    shown = CliRunner().invoke(agentcell, ["batch", str(rows), "--run-dir", str(tmp_path / "r"), "--dry-run"])
    assert (shown.exit_code, shown.stdout, list(tmp_path.iterdir())) == (0, "new       a\n", [rows])


def test_where_nothing_is_to_be_done_the_last_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").touch()
    ended = run_command(batch_line([], "rows.jsonl"), tmp_path)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (0, b"nothing to do: there are no rows")


def test_what_former_runs_have_spent_counts_for_the_cap(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "a", "agent_type": "coder", "project_dir": "/", "starting_message": "go"}\n')
    spent = {"at": 1.0, "event": "ended", "id": "b", "attempt": 1, "status": "complete", "cost_usd": 2.0}
    with begun(tmp_path / "rows.run") as run:
        run.record(spent)
    ended = run_command(batch_line([], rows.name, "--max-cost-usd", "1"), tmp_path)
    assert (ended.returncode, b"--max-cost-usd 1 is reached: $2.0000 are spent" in ended.stderr) == (75, True)

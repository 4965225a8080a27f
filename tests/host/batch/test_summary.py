"""What a batch came to is said in a table, or in plain lines, with where to look and how to go on."""

import io
from pathlib import Path

from agentcell.batch.identity import slug
from agentcell.batch.index import Entry, Index
from agentcell.batch.phrases import nothing_to_do
from agentcell.batch.summary import MOST_FAILURES, Failure, Failures, failures_in, going_on, lines, summary
from agentcell.batch.tally import Running, Snapshot
from agentcell.terminal import without_escapes
from agentcell_protocol.result import Usage

DIRECTORY = Path("rows.run")

SEEN = Snapshot(
    total=10,
    done=4,
    failed=3,
    pending=3,
    retries=2,
    usage=Usage(input_tokens=1000, cache_read_input_tokens=234, output_tokens=56),
    cost_usd=0.5,
    unknown_costs=1,
    elapsed=3725.0,
    by_status={"complete": 3, "continue": 1, "error": 3},
    by_category={"crashed": 2, "timeout": 1},
    slowest=(("b", 61.2), ("a", 3.25)),
)


class Screen(io.StringIO):
    """A stream that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def test_it_counts_by_status_and_category_and_says_where_to_look() -> None:
    failures = Failures(
        (
            Failure("b", "crashed", 0, DIRECTORY / "cells" / "b", DIRECTORY / "cells" / "b" / "2" / "result.json"),
            Failure("c", "bad_request", 9),
            Failure("d", "crashed", 99, DIRECTORY / "cells" / "d"),
        ),
        4,
    )
    assert summary(SEEN, failures, DIRECTORY) == [
        ("rows", "10: 4 done, 3 failed, 3 pending"),
        ("complete", "3"),
        ("continue", "1"),
        ("error (crashed)", "2"),
        ("error (timeout)", "1"),
        ("retries", "2"),
        ("cost", "$0.5000 and the unknown cost of 1 attempt"),
        ("tokens", "1,234 in, 56 out"),
        ("time", "1 h 02 min"),
        ("slowest", "b 1 min 01 s, a 3.2 s"),
        ("results", "rows.run/results.jsonl"),
        ("failed", "b (crashed): rows.run/cells/b/2/result.json"),
        ("failed", "c (bad_request): rows.run/results.jsonl"),
        ("failed", "d (crashed): rows.run/cells/d"),
        ("failed", "and 1 more"),
    ]


def test_a_cost_that_nobody_knows_is_not_nothing() -> None:
    unknown = Snapshot(total=1, done=1, pending=0, cost_usd=None, unknown_costs=2)
    assert ("cost", "cost unknown (2 attempts)") in summary(unknown, Failures(), DIRECTORY)
    assert ("cost", "$0.00") in summary(Snapshot(), Failures(), DIRECTORY)


def test_elsewhere_than_on_a_terminal_nothing_is_padded() -> None:
    assert lines([("rows", "1"), ("complete", "1")], io.StringIO()) == ["rows: 1", "complete: 1"]
    assert lines([("rows", "1")], None) == ["rows: 1"]


def test_on_a_terminal_it_has_columns() -> None:
    drawn = lines([("rows", "1"), ("complete", "[b]2")], Screen())
    assert [without_escapes(line) for line in drawn] == ["rows      1", "complete  [b]2"]


def test_what_an_id_holds_drives_no_terminal() -> None:
    evil = "\x1b[2J\x07a\nb\u202e"
    finished = Index.of({evil: Entry(0, "error", "crash\x1b[2Jed", None)})
    text = "\n".join(lines(summary(SEEN, failures_in(finished, DIRECTORY), DIRECTORY), io.StringIO()))
    assert "failed: a b (crashed): rows.run/results.jsonl" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_the_first_failures_are_named_and_all_are_counted(tmp_path: Path) -> None:
    rows = {f"r{n}": Entry(n, "error" if n % 2 else "complete", "crashed", None) for n in range(100)}
    finished = Index.of(rows)
    folder = tmp_path / "cells" / slug("r1")
    for name in ("9", "10", "transcript"):
        (folder / name).mkdir(parents=True)
        (folder / name / "result.json").touch()
    (tmp_path / "cells" / slug("r3") / "1").mkdir(parents=True)
    found = failures_in(finished, tmp_path)
    assert (len(found.first), found.total) == (MOST_FAILURES, 50)
    assert found.first[:3] == (
        Failure("r1", "crashed", 1, folder, folder / "10" / "result.json"),
        Failure("r3", "crashed", 3, tmp_path / "cells" / slug("r3")),
        Failure("r5", "crashed", 5),
    )


def test_of_a_batch_with_no_row_left_it_says_so_and_how_failed_ones_run_again() -> None:
    told = [
        nothing_to_do(Snapshot(done=done, failed=failed), retriable)
        for done, failed, retriable in ((0, 0, 0), (2, 0, 0), (2, 1, 1), (0, 3, 3), (0, 3, 2), (0, 1, 0))
    ]
    assert told == [
        "nothing to do: there are no rows",
        "nothing to do: every row has succeeded",
        "nothing to do; 1 failed: --retry-failed runs it again",
        "nothing to do; 3 failed: --retry-failed runs them again",
        "nothing to do; 3 failed: --retry-failed runs 2 of them again",
        "nothing to do; 1 failed, and there is no request to run it again",
    ]


def test_it_says_how_to_go_on_when_rows_are_left() -> None:
    assert going_on(SEEN) == "3 rows are pending: run the same command again to go on"
    cut = Snapshot(total=1, running=(Running("a", 1, 0.0),), pending=0)
    assert going_on(cut) == "1 row is pending: run the same command again to go on"
    assert going_on(Snapshot(total=1, done=1, pending=0)) is None

"""Figures are compared in turns, judged by their median, and shown as they are."""

from pathlib import Path

import pytest
from benchmarks import report
from benchmarks.__main__ import TOPICS
from benchmarks.measure import Figure, Spread, compare
from tests.meta.source import ROOT

ONE = Spread.of([1.0])


def test_a_peer_is_measured_before_and_after_ours() -> None:
    order: list[str] = []
    times = {"peer": iter([9.0, 2.0, 4.0, 2.0, 4.0]), "ours": iter([9.0, 3.0, 6.0])}

    def took(name: str) -> float:
        order.append(name)
        return next(times[name])

    compared = compare(lambda: took("ours"), lambda: took("peer"), pairs=2)
    assert order == ["peer", "ours", *["peer", "ours", "peer"] * 2]
    assert (compared.ratio, compared.noise) == (Spread.of([1.0, 2.0]), Spread.of([2.0, 2.0]))
    assert (compared.ours, compared.theirs) == (Spread.of([3.0, 6.0]), Spread.of([2.0, 4.0, 2.0, 4.0]))


@pytest.mark.parametrize(
    ("goal", "at_least", "is_met"),
    [(None, False, True), (1.0, False, True), (1.0, True, True), (0.9, False, False), (1.1, True, False)],
)
def test_a_goal_is_kept_to_by_the_median(goal: float | None, at_least: bool, is_met: bool) -> None:
    assert Figure("topic", "what", "peer", Spread.of([0.5, 1.0, 9.0]), goal, at_least).is_met is is_met


def test_the_table_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.put_into(page, [Figure("topic", "what", "peer", ONE, 1.1, noise=ONE, detail="seen")])
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1], "old" in lines) == ("before", "after", False)
    assert "| what | peer | 1.00 (1.00–1.00) | ≤ 1.10 | 1.00 (1.00–1.00) | seen |" in lines


def test_the_page_has_a_place_for_the_table() -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    assert page.index(report.BEGIN) < page.index(report.END)


@pytest.mark.parametrize("topic", TOPICS)
def test_each_topic_is_a_module(topic: str) -> None:
    assert "def run() -> list[Figure]:" in (ROOT / "benchmarks" / f"{topic}.py").read_text()

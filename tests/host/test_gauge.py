"""What a cell takes, against what it may take."""

import pytest

from agentcell.causes import Exceeded
from agentcell.gauge import CPU_WINDOW_SECONDS, QUICKEST_SECONDS, SLOWEST_SECONDS, Gauge
from agentcell.limits import Limits
from agentcell.processes import RENEWAL_SECONDS, Row


def gauge(**limits: float) -> Gauge:
    return Gauge(lambda: 1, Limits(**limits))  # type: ignore[arg-type]


def row(pid: int = 1, memory_mb: float = 10, cpu_seconds: float = 0, threads: int = 1, start: float = 5) -> Row:
    return Row(pid, 0, start, f"p{pid}", memory_mb, cpu_seconds, threads)


def test_the_peak_is_the_most_that_all_had_together() -> None:
    cell = gauge()
    assert cell.peak_memory_mb is None
    for rows in ([row(memory_mb=10)], [row(memory_mb=20), row(2, 30)], [row(memory_mb=5)], []):
        cell.read(rows, 0)
    assert cell.peak_memory_mb == 50


def test_another_process_with_the_workers_pid_is_not_the_worker() -> None:
    cell = gauge(max_processes=1)
    cell.read([row()], 0)
    cell.read([row(start=6), row(2)], 1)
    assert (cell.rows, cell.exceeded()) == ((), None)


def test_memory_over_the_limit_names_the_largest() -> None:
    cell = gauge(max_memory_mb=100)
    cell.read([row(memory_mb=20), row(2, 70), row(3, 15)], 0)
    assert cell.needs_weighing
    cell.take_weight(cell.rows, 101)
    assert cell.exceeded() == Exceeded("max_memory_mb", 100, 101, pid=2, process="p2")
    assert cell.peak_memory_mb == 105


def test_what_is_shared_does_not_count_and_growth_does() -> None:
    cell = gauge(max_memory_mb=100)
    cell.read([row(memory_mb=60), row(2, 60)], 0)
    cell.take_weight(cell.rows, 80)
    assert (cell.memory_mb, cell.exceeded(), cell.needs_weighing) == (80, None, False)
    cell.read([row(memory_mb=60), row(2, 75)], 1)
    assert (cell.memory_mb, cell.needs_weighing) == (95, False)
    cell.read([row(memory_mb=60), row(2, 81)], 1)
    assert cell.needs_weighing


def test_what_was_reached_is_never_over_the_peak() -> None:
    cell = gauge(max_memory_mb=100)
    cell.read([row(memory_mb=60), row(2, 60)], 0)
    cell.take_weight(weighed := cell.rows, 80)
    cell.read([row(memory_mb=60), row(2, 90)], 1)
    cell.take_weight(weighed, 110)
    assert (cell.memory_mb, cell.peak_memory_mb) == (140, 140)


def test_what_is_shared_is_found_out_anew_from_time_to_time() -> None:
    cell = gauge(max_memory_mb=100)
    cell.read([row(memory_mb=60), row(2, 60)], 0)
    cell.take_weight(cell.rows, 80)
    cell.read([row(memory_mb=60), row(2, 60)], RENEWAL_SECONDS + 1)
    assert cell.needs_weighing


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        ({"max_processes": 1}, Exceeded("max_processes", 1, 2)),
        ({"max_threads": 4}, Exceeded("max_threads", 4, 5)),
        ({"max_cpu_seconds": 2.5}, Exceeded("max_cpu_seconds", 2.5, 3)),
        ({"max_processes": 1, "max_threads": 4, "max_cpu_seconds": 2}, Exceeded("max_cpu_seconds", 2, 3)),
        ({"max_processes": 2, "max_threads": 5, "max_cpu_seconds": 3}, None),
        ({}, None),
    ],
)
def test_everything_else_is_added_up(limits: dict[str, float], reached: Exceeded | None) -> None:
    cell = gauge(**limits)
    cell.read([row(threads=1, cpu_seconds=1), row(2, threads=4, cpu_seconds=2)], 0)
    assert cell.exceeded() == reached


def test_cpu_time_does_not_go_back_when_a_process_ends() -> None:
    cell = gauge(max_cpu_seconds=2)
    cell.read([row(), row(2, cpu_seconds=3)], 0)
    cell.read([row()], 1)
    assert cell.exceeded() == Exceeded("max_cpu_seconds", 2, 3)


def test_much_cpu_for_long_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentcell.gauge._cores", lambda: 2)
    cell = gauge()
    for now in range(40):
        cell.read([row(cpu_seconds=now * 1.8)], now)
        assert bool(cell.notices) == (now >= CPU_WINDOW_SECONDS)
    text = "the session took 90 % of the CPU over 10 s; max_cpu_percent is 80"
    assert [(notice.code, notice.message) for notice in cell.notices] == [("max_cpu_percent", text)]
    assert cell.violated == ["max_cpu_percent"]
    assert cell.exceeded() is None


@pytest.mark.parametrize("limit", [80, None])
def test_a_burst_is_no_news(monkeypatch: pytest.MonkeyPatch, limit: float | None) -> None:
    monkeypatch.setattr("agentcell.gauge._cores", lambda: 2)
    cell = Gauge(lambda: 1, Limits(max_cpu_percent=limit))
    for now in range(40):
        cell.read([row(cpu_seconds=min(now * 2, 10 if limit else 1000))], now)
    assert cell.notices == []


def test_the_nearer_the_limit_the_sooner_the_next_look() -> None:
    cell, waits = gauge(max_memory_mb=2000), []
    cell.read([row()], 0)
    for memory_mb in (10, 1000, 1900, 1990, 2100):
        cell.read([row(memory_mb=memory_mb)], 60)
        waits.append(cell.patience())
    assert waits == [pytest.approx(0.4975), 0.25, 0.025, QUICKEST_SECONDS, QUICKEST_SECONDS]


def test_without_limits_only_the_peak_is_looked_for() -> None:
    cell = gauge()
    cell.read([row()], 0)
    assert cell.patience() == 0.1
    cell.read([row()], 60)
    assert cell.patience() == SLOWEST_SECONDS


def test_the_last_look_at_a_living_worker_is_kept() -> None:
    cell = gauge()
    cell.read([row(), row(2)], 0)
    cell.read([], 1)
    assert (cell.rows, cell.last) == ((), [row(), row(2)])

"""The runs that have no result yet: in their order, and each ended as it was asked."""

from pathlib import Path

import pytest

from agentcell.orders import Order
from agentcell.outlet import Outlet
from agentcell.serve.runs import Runs
from agentcell.serve.voice import Voice
from agentcell.stop import CANCEL_LINE, STDIN_ENDED
from agentcell_protocol.request import parse_request

pytestmark = pytest.mark.anyio


def order(run_id: str, home: Path) -> Order:
    request = {"session_name": "a", "agent_type": "coder", "project_dir": home, "starting_message": "hi", "id": run_id}
    return Order(parse_request(request), environment={}, tag=Voice(run_id, Outlet(1)))


async def test_runs_are_taken_in_their_order_until_there_will_be_none(tmp_path: Path) -> None:
    runs = Runs()
    for number in range(3):
        runs.add(order(f"r{number}", tmp_path))
    runs.cancel("r1", CANCEL_LINE)
    runs.close()
    taken = [one.request.id async for one in runs.orders()]
    assert taken == ["r0", "r2"]
    assert [f"r{number}" in runs for number in range(3)] == [True, False, True]


async def test_only_who_asks_twice_for_the_same_run_has_it_killed(tmp_path: Path) -> None:
    runs = Runs()
    for number in range(2):
        runs.add(order(f"r{number}", tmp_path))
    orders = runs.orders()
    one, two = [await anext(orders) for _ in range(2)]
    runs.cancel("r0", CANCEL_LINE)
    runs.cancel_all(STDIN_ENDED)
    ends = [(each.stop.reason, each.stop.forced.is_set()) for each in (one, two)]
    assert ends == [(CANCEL_LINE, False), (STDIN_ENDED, False)]
    runs.cancel("r0", CANCEL_LINE)
    assert (one.stop.forced.is_set(), two.stop.forced.is_set()) == (True, False)
    runs.kill_all()
    assert two.stop.forced.is_set()
    await orders.aclose()

"""When nobody wants a keeper any more, it ends all that it began, and itself."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM

import pytest
from tests.ending import ending
from tests.faults.harness import Room
from tests.host.executors.keepers import BOUND_SECONDS, CLINGS, HANGS, STAND_IN, STRAY, Kept, is_gone, keeping, order

from agentcell.executors.keeper.listening import remove_left
from agentcell.executors.ray.keeping import Keeping
from agentcell.executors.ray.talk import RaySettings
from agentcell.executors.wire import ALIVE
from agentcell.reap import GRACE_SECONDS
from agentcell_protocol.cell import marked

LEASE_SECONDS = 2.0


@pytest.fixture
def room(tmp_path: Path) -> Room:
    path = tmp_path / "room"
    path.mkdir()
    return Room(path)


@pytest.fixture
def starter() -> Iterator["subprocess.Popen[bytes]"]:
    with ending(subprocess.Popen(["sleep", "600"])) as process:
        yield process


def ends(keeper: Kept, markers: list[str]) -> None:
    assert keeper.has_ended()
    assert not keeper.directory.exists()
    assert all(marked(marker) == [] for marker in markers)


def test_the_end_of_its_stdin_ends_everything(room: Room) -> None:
    with keeping(room) as keeper:
        asked = [keeper.ask(order(room, STRAY, *HANGS)).begun() for _ in range(3)]
        keeper.stdin.close()
        assert [one.result()["error"]["category"] for one in asked] == ["host_lost"] * 3
        ends(keeper, [one.marker for one in asked])


@pytest.mark.slow
def test_a_cell_that_clings_is_ended_in_bounded_time(room: Room) -> None:
    with keeping(room) as keeper, closing(keeper.ask(order(room, STRAY, *CLINGS)).begun()) as asked:
        keeper.stdin.close()
        ends(keeper, [asked.marker])


def test_the_death_of_its_starter_ends_everything(room: Room, starter: "subprocess.Popen[bytes]") -> None:
    with keeping(room, starter=starter.pid) as keeper:
        asked = keeper.ask(order(room, STRAY, *HANGS)).begun()
        starter.send_signal(SIGKILL)
        assert asked.result()["error"]["category"] == "host_lost"
        ends(keeper, [asked.marker])


@pytest.mark.slow
def test_the_end_of_its_lease_ends_everything(room: Room) -> None:
    with keeping(room, lease_seconds=LEASE_SECONDS) as keeper:
        keeper.say(ALIVE)
        asked = keeper.ask(order(room, STRAY, *HANGS)).begun()
        assert asked.result()["error"]["category"] == "host_lost"
        ends(keeper, [asked.marker])


@pytest.mark.slow
def test_a_lease_that_is_renewed_meanwhile_survives_a_standstill(room: Room) -> None:
    with keeping(room, lease_seconds=LEASE_SECONDS) as keeper:
        keeper.send(SIGSTOP)
        assert not keeper.has_ended(LEASE_SECONDS + 0.5)
        keeper.say(ALIVE)
        keeper.send(SIGCONT)
        assert keeper.settle()["swept"] == 0


def test_a_signal_ends_everything(room: Room) -> None:
    with keeping(room) as keeper:
        asked = keeper.ask(order(room, STRAY, *HANGS)).begun()
        keeper.send(SIGTERM)
        assert asked.result()["error"]["category"] == "host_lost"
        ends(keeper, [asked.marker])


def test_a_second_signal_ends_everything_at_once(room: Room) -> None:
    with keeping(room) as keeper, closing(keeper.ask(order(room, STRAY, *CLINGS)).begun()) as asked:
        began = time.monotonic()
        keeper.send(SIGTERM)
        keeper.stdout.close()
        while not keeper.has_ended(0.05):
            keeper.send(SIGTERM)  # two that are not heard yet are one
        assert time.monotonic() - began < GRACE_SECONDS
        ends(keeper, [asked.marker])


def test_the_cells_of_a_killed_keeper_end_as_they_lose_their_host(room: Room) -> None:
    with keeping(room) as keeper:
        asked = keeper.ask(order(room, *HANGS)).begun()
        keeper.send(SIGKILL)
        with pytest.raises(EOFError):
            asked.rest()
        assert is_gone(asked.marker)
        remove_left(keeper.directory)


def test_the_next_keeper_removes_what_a_killed_one_has_left_and_nothing_of_one_that_lives(room: Room) -> None:
    with keeping(room) as killed, keeping(room) as alive:
        killed.send(SIGKILL)
        assert killed.has_ended()
        assert killed.directory.exists()
        with keeping(room):
            assert not killed.directory.exists()
        assert alive.ask(order(room, {"text": "done"})).result()["response"] == "done"


def test_who_started_a_keeper_removes_what_it_has_left_when_it_is_killed(room: Room) -> None:
    settings = RaySettings(worker_command=STAND_IN, lease_seconds=BOUND_SECONDS)
    started = Keeping(asdict(settings))
    directory = Path(started.address).parent
    assert directory.exists()
    started.close(0.0)
    assert (started.is_over, directory.exists()) == (True, False)

"""What a bridge says comes to whom it is said, whoever reads; and a bridge that is gone is replaced."""

from pathlib import Path

import anyio
import pytest
from tests.executors_ray.bridges import READY, Bridge, opened

from agentcell.errors import ExecutorError
from agentcell.executors.ray import link as link_module
from agentcell.executors.wire import line

pytestmark = pytest.mark.anyio

ECHO = READY + "for message in lines: say(type='echo', marker=message['to'], text=message['text'])"
DIES = READY + "next(lines); os._exit(1)"
SETTLES = READY + "for message in lines: say(type='settled', marker=message['marker'], swept=len(message['markers']))"
FAILS = 'print(\'{"type": "failed", "marker": "opening", "reason": "no cluster", "remedy": "start one"}\')'
FALLS = "raise SystemExit('something is missing')"


async def test_what_is_said_comes_to_whom_it_is_said_whoever_reads(bridge: Bridge) -> None:
    bridge(ECHO)
    heard: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    async with opened() as links:
        link = await links.get()

        async def listen(name: str) -> None:
            with link.lane(name) as lane:
                for number in range(20):
                    await link.say(line("echo", to=name, text=f"{name}{number}"))
                    said = await lane.next()
                    heard[name].append(said["text"] if said else "")

        async with anyio.create_task_group() as tasks:
            for name in heard:
                tasks.start_soon(listen, name)
    assert heard == {name: [f"{name}{number}" for number in range(20)] for name in "abc"}


async def test_when_the_one_that_reads_leaves_another_reads(bridge: Bridge) -> None:
    bridge(ECHO)
    async with opened() as links:
        link = await links.get()
        with link.lane("first") as first, link.lane("second") as second:
            async with anyio.create_task_group() as tasks:
                with anyio.CancelScope() as leaving:

                    async def leave() -> None:
                        await anyio.wait_all_tasks_blocked()
                        leaving.cancel()

                    async def answer() -> None:
                        said = await second.next()
                        assert said is not None
                        assert said["text"] == "there"

                    tasks.start_soon(leave)
                    tasks.start_soon(answer)
                    await first.next()
                await link.say(line("echo", to="second", text="there"))


async def test_those_who_wait_are_told_when_the_bridge_is_gone_and_the_next_get_another(bridge: Bridge) -> None:
    bridge(DIES)
    async with opened() as links:
        link = await links.get()
        with link.lane("a") as lane:
            await link.say(line("die"))
            assert await lane.next() is None
        bridge(SETTLES)
        assert await links.settle(["x", "y"]) == 2
        assert (await links.get()).pid != link.pid


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (FAILS, "no cluster; start one"),
        (FALLS, "the bridge to Ray has ended: something is missing; see what Ray has logged"),
    ],
)
async def test_a_bridge_that_cannot_be_opened_says_why(bridge: Bridge, program: str, told: str) -> None:
    bridge(program)
    async with opened() as links:
        with pytest.raises(ExecutorError) as raised:
            await links.get()
    assert str(raised.value) == told


async def test_those_who_wait_for_the_same_bridge_are_told_together_that_there_is_none(bridge: Bridge) -> None:
    bridge(
        "import pathlib\nwith pathlib.Path(__file__).with_name('starts').open('a') as starts: starts.write('x')\n"
        + FAILS
    )
    failures = []
    async with opened() as links:

        async def wait() -> None:
            with pytest.raises(ExecutorError) as raised:
                await links.get()
            failures.append(raised.value.reason)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(wait)
    started = Path(link_module.BRIDGE[-1]).with_name("starts").read_text()
    assert (failures, started) == (["no cluster"] * 5, "x")


async def test_a_bridge_that_is_killed_while_it_opens_has_a_second_try(bridge: Bridge) -> None:
    bridge(
        "import os, pathlib, signal\n"
        "killed = pathlib.Path(__file__).with_name('killed')\n"
        "if not killed.exists():\n"
        "    killed.touch()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n" + SETTLES
    )
    async with opened() as links:
        assert await links.settle(["x"]) == 1


async def test_when_all_is_closed_there_is_no_other_bridge(bridge: Bridge) -> None:
    bridge(ECHO)
    async with opened() as links:
        await links.get()
        await links.close()
        with pytest.raises(ExecutorError, match="closed"):
            await links.get()

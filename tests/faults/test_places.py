"""A session can be run from wherever in a program somebody wants one; its cell is forked from a stand-in's server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.scenes import living
from tests.faults import endurance
from tests.meta.source import ROOT
from tests.worker import script

pytestmark = pytest.mark.slow

BOUND_SECONDS = 90

PLACES = {
    "short-lived threads, one after the other": """
        from concurrent.futures import ThreadPoolExecutor
        for _ in range(2):
            with ThreadPoolExecutor(1) as pool:
                say(pool.submit(run_session_sync, request, env=environment).result())
    """,
    "threads at once": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(2) as pool:
            for session in [pool.submit(run_session_sync, request, env=environment) for _ in range(2)]:
                say(session.result())
    """,
    "a running asyncio loop": """
        import asyncio
        async def main():
            for result in await asyncio.gather(*(run_session(request, env=environment) for _ in range(2))):
                say(result)
        asyncio.run(main())
    """,
    "a running trio loop": """
        import trio
        async def one():
            say(await run_session(request, env=environment))
        async def main():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(one)
                nursery.start_soon(one)
        trio.run(main)
    """,
    "a forked pool's child": """
        pool("fork")
    """,
    "a spawned pool's child": """
        pool("spawn")
    """,
}

PROGRAM = f"""
import json, sys
import agentcell.resources
from agentcell import run_session, run_session_sync
from {endurance.__name__} import forking

vars(agentcell.resources)["starting"] = forking
request, environment = json.loads(sys.argv[1])

def say(result):
    print(json.dumps([result.response, result.start, result.exit_code]), flush=True)

def pool(kind):
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(kind)) as pool:
        for _ in range(2):
            say(pool.submit(run_session_sync, request, env=environment).result())

if __name__ == "__main__":
"""


@pytest.mark.parametrize("place", PLACES)
def test_a_session_can_be_run_from(tmp_path: Path, place: str) -> None:
    environment = script.environment(tmp_path)
    asked = script.request(tmp_path, context={"stand_in": [{"text": "hello"}]})
    body = "\n".join("    " + line.removeprefix("        ") for line in PLACES[place].splitlines())
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + body)
    ended = subprocess.run(
        [sys.executable, program, json.dumps([asked, environment])],
        check=False,
        env={**environment, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=BOUND_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [["hello", "fork", 0]] * 2, ended.stderr
    assert living(tmp_path) == []

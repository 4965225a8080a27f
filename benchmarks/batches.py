"""Sixteen real sessions, two at a time: `agentcell batch`, its start included, against three ways to do without it.

- `xargs -P2 claude -p`: the bundled CLI alone, with the same model, tools and permission mode.
- `xargs -P2 python`: for each session a Python that imports the SDK and runs it.
- One Python that runs them all through the SDK, in one event loop; against that the CPU seconds are compared.

All get the same answer from the same scripted model, and begin with an empty home. What differs: `claude -p` prints
text, has no stream of messages and shares one config directory, which spares it the making of fifteen; ours is given
session ids, keeps the conversations, a journal and results that survive a crash, and sees that nothing is left of each
session. In each round the nearest peers run before ours and after it; what they take the second time is their noise.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from tests.meta.source import ROOT

from agentcell_protocol.sdk import bundled_cli
from benchmarks.measure import Figure, Spread
from benchmarks.plain_sdk import MODEL, PERMISSION_MODE, PROMPT, TOOLS
from benchmarks.plain_sdk import __name__ as plain_sdk
from benchmarks.scene import Scene, request, scene
from benchmarks.spent import Spent, spent

SESSIONS = 16
AT_ONCE = 2
ROUNDS = 5

BATCH = "agentcell batch"
CLI = "xargs -P2 claude -p"
FRESH = "a fresh Python per session that imports the SDK"
SHARED = "the same sessions through the SDK in one process"

Command = Callable[[Scene, Path], list[str]]
"""What a side runs, in a new folder of its own."""


def run() -> list[Figure]:
    """All sides, again and again."""
    with scene() as place:
        rounds = [_round(place, number) for number in range(ROUNDS)]
    return [
        _figure(f"{SESSIONS} real sessions, wall", rounds, CLI, _wall, goal=0.70),
        _figure(f"{SESSIONS} real sessions, wall", rounds, FRESH, _wall, goal=0.36),
        _figure(f"{SESSIONS} real sessions, CPU", rounds, SHARED, _cpu, goal=1.10),
    ]


Round = dict[str, list[Spent]]
"""What each side took, by its name: once, or twice."""


def _round(place: Scene, number: int) -> Round:
    taken: Round = {}
    for turn, side in enumerate((FRESH, CLI, SHARED, BATCH, SHARED, CLI)):
        taken.setdefault(side, []).append(_taken(place, side, f"{number}-{turn}"))
        print(f"{number} {side}: {taken[side][-1]}", file=sys.stderr, flush=True)
    return taken


def _taken(place: Scene, side: str, name: str) -> Spent:
    folder, before = place.folder / name, place.answered
    folder.mkdir()
    took = spent(COMMANDS[side](place, folder), place.environment(f"{name}/home"), ROOT)
    answered = place.answered - before
    assert answered == SESSIONS, f"{side}: {answered} sessions were answered"
    return took


def _batch(place: Scene, folder: Path) -> list[str]:
    rows = folder / "rows.jsonl"
    asked = [request(place.project, f"row-{number}") for number in range(SESSIONS)]
    rows.write_text("".join(f"{json.dumps(row)}\n" for row in asked))
    variables = [f"--env={name}={value}" for name, value in place.endpoint.environment().items()]
    agentcell = str(Path(sys.executable).with_name("agentcell"))
    return [agentcell, "batch", str(rows), f"--jobs={AT_ONCE}", "--progress=none", *variables]


def _claude(place: Scene, folder: Path) -> list[str]:
    flags = [f"--model={MODEL}", f"--tools={','.join(TOOLS)}", f"--allowedTools={','.join(TOOLS)}"]
    flags += [f"--permission-mode={PERMISSION_MODE}", "--setting-sources=", "--strict-mcp-config"]
    here = ["env", "-C", str(place.project), str(bundled_cli()), *flags, "-p", PROMPT]
    return _each(folder, here)


def _fresh(place: Scene, folder: Path) -> list[str]:
    return _each(folder, [sys.executable, "-m", plain_sdk, str(place.project), "1", "1"])


def _shared(place: Scene, folder: Path) -> list[str]:
    del folder
    return [sys.executable, "-m", plain_sdk, str(place.project), str(SESSIONS), str(AT_ONCE)]


def _each(folder: Path, command: list[str]) -> list[str]:
    """The command once for each session: for each line of a file, which it is not told."""
    lines = folder / "lines"
    lines.write_text("session\n" * SESSIONS)
    return ["xargs", f"--arg-file={lines}", f"-P{AT_ONCE}", "-I{}", *command]


COMMANDS: dict[str, Command] = {BATCH: _batch, CLI: _claude, FRESH: _fresh, SHARED: _shared}


def _figure(what: str, rounds: list[Round], peer: str, measure: Callable[[Spent], float], *, goal: float) -> Figure:
    ours = [measure(taken[BATCH][0]) for taken in rounds]
    theirs = [sum(map(measure, taken[peer])) / len(taken[peer]) for taken in rounds]
    again = [tuple(map(measure, taken[CLI if peer == FRESH else peer])) for taken in rounds]
    return Figure(
        "batches",
        what,
        peer,
        Spread.of([mine / its for mine, its in zip(ours, theirs, strict=True)]),
        goal,
        noise=Spread.of([last / first for first, last in again]),
        detail=f"{Spread.of(ours)} s, the peer {Spread.of(theirs)} s",
    )


def _wall(of: Spent) -> float:
    return of.wall


def _cpu(of: Spent) -> float:
    return of.cpu

"""The run directory of a batch: all that is known of it, and who may go on with it.

DIR/run.json            what it is, and how it was begun
DIR/lock                whose it is at the moment
DIR/journal.jsonl       what happened, in order
DIR/results.jsonl       one line for each row that is finished
DIR/cells/SLUG/N/       what attempt N at a row was asked and answered
DIR/cells/SLUG/transcript/    the row's conversations
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import orjson

from agentcell.batch import journal
from agentcell.batch.boot import boot_id
from agentcell.batch.history import History, fold
from agentcell.batch.identity import slug
from agentcell.batch.index import Index
from agentcell.batch.lines import Lines
from agentcell.batch.lock import LOCK, locked
from agentcell.batch.recovery import Recovery, recover
from agentcell.batch.repair import Repair, put_whole, read_whole
from agentcell.batch.results import Results, note
from agentcell.errors import RunDirectoryError
from agentcell.transcripts import PRIVATE_DIRECTORY
from agentcell_protocol.version import PROTOCOL, __version__

FORMAT = 1
"""Of the run directory. One that is newer is left alone."""

RUN, JOURNAL, RESULTS, CELLS, TRANSCRIPT = "run.json", "journal.jsonl", "results.jsonl", "cells", "transcript"

UNFINISHED = frozenset({LOCK, JOURNAL, RESULTS, f".{RUN}.new"})
"""What may be there of a run directory whose host died while it made it."""

OTHER_DIRECTORY = "name another directory, or one that does not exist yet"


class RunDirectory:
    """A run directory that is this process's. `repairs` and `recovery` say what was done to go on with it."""

    def __init__(self, path: Path, requests: str, lines: Lines, results: Results, history: History) -> None:
        self.path = path
        self.requests = requests
        self.journal = lines
        self.results = results
        self.history = history
        self.recovery = Recovery()

    @classmethod
    @contextmanager
    def open(cls, path: Path, *, requests: str = "-") -> Iterator[Self]:
        """The run directory at `path`, made if need be, repaired if need be, and nobody else's meanwhile. Blocks.

        `requests` is where the rows come from. No attempt is left open: what came of it is in the history. Raises
        BusyError while another batch has it, RunDirectoryError when it is none that can be gone on with, and OSError.
        """
        _make(path)
        with ExitStack() as held:
            held.enter_context(locked(path))
            if is_run_directory(path):
                read_description(path)
            results = held.enter_context(Results.open(path / RESULTS))
            history = History(results.index)
            lines = held.enter_context(Lines.open(path / JOURNAL, lambda _, message: history.apply(message)))
            run = cls(path, requests, lines, results, history)
            run.recovery = recover(run)
            yield run

    def begin(self, config: Mapping[str, Any]) -> None:
        """Begin, or go on: `config`, how the rows are run, is written down. Blocks."""
        if not is_run_directory(self.path):
            _describe(self.path, config, self.requests)
        self.record(journal.opened(time.time(), host_pid=os.getpid(), boot_id=boot_id(), config=config))

    @property
    def repairs(self) -> list[Repair]:
        """What was not whole when it was opened."""
        return [repair for repair in (self.results.repair, self.journal.repair) if repair is not None]

    def folder(self, id: str, attempt: int) -> Path:  # noqa: A002 - it is what it is called everywhere
        """The folder of an attempt, made if need be, for its user alone. Blocks."""
        folder = self._cell(id) / str(attempt)
        folder.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        return folder

    def keep_root(self, id: str) -> Path:  # noqa: A002
        """Where the row's conversations are kept."""
        return self._cell(id) / TRANSCRIPT

    def record(self, *messages: dict[str, Any]) -> None:
        """Write lines into the journal, and take them into the history. Blocks."""
        self.journal.write(messages)
        for message in messages:
            self.history.apply(message)

    def reopen(self, ids: list[str]) -> None:
        """Have these rows run again as if they had not been tried. Their results are dropped. Blocks."""
        if ids:
            self.record(journal.reopened(time.time(), ids=ids))
            self.results.drop(ids)

    def _cell(self, id: str) -> Path:  # noqa: A002
        cell = self.path / CELLS / slug(id)
        for directory in (cell.parent, cell):
            directory.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        return cell


def is_run_directory(path: Path) -> bool:
    """Whether there is one, of whatever format. Blocks."""
    return os.path.exists(path / RUN)  # noqa: PTH110 - that of a Path raises where this says no


def read_description(path: Path) -> dict[str, Any]:
    """What `run.json` says. Raises RunDirectoryError when `path` is no run directory, or a newer one. Blocks."""
    try:
        description = orjson.loads((path / RUN).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise RunDirectoryError(path, f"it has no {RUN}, so it is no run directory", OTHER_DIRECTORY) from None
    except orjson.JSONDecodeError:
        raise RunDirectoryError(path, f"its {RUN} is not JSON", OTHER_DIRECTORY) from None
    version = description.get("format") if isinstance(description, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise RunDirectoryError(path, f"its {RUN} names no format", OTHER_DIRECTORY)
    if version > FORMAT:
        reason = f"its format is {version}, and this agentcell knows {FORMAT}"
        raise RunDirectoryError(path, reason, f"use agentcell {description.get('agentcell')} or newer")
    return dict(description)


def known_history(path: Path) -> History | None:
    """The history of the run directory, None where there is none yet; nothing is changed. Blocks.

    Raises RunDirectoryError when it could be none.
    """
    if is_run_directory(path):
        read_description(path)
        return read_history(path)
    if os.path.lexists(path):
        _refuse_others(path)
    return None


def read_history(path: Path) -> History:
    """The history of a run directory that may be somebody else's; nothing in it is changed. Blocks."""
    finished = Index()
    for offset, message in read_whole(path / RESULTS):
        note(finished, offset, message)
    return fold((message for _, message in read_whole(path / JOURNAL)), finished)


def _make(path: Path) -> None:
    """Make the directory, unless it is there and either a run directory or empty."""
    try:
        path.mkdir(mode=PRIVATE_DIRECTORY, parents=True)
    except FileExistsError:
        _refuse_others(path)
    except OSError as refused:
        raise RunDirectoryError(path, f"it cannot be made ({refused.strerror})", OTHER_DIRECTORY) from None


def _refuse_others(path: Path) -> None:
    """Raise RunDirectoryError unless it is a run directory, or can become one."""
    try:
        names = {entry.name for entry in path.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        raise RunDirectoryError(path, "it is no directory", "name another one") from None
    except OSError as refused:
        raise RunDirectoryError(path, f"it cannot be read ({refused.strerror})", OTHER_DIRECTORY) from None
    if RUN not in names and not names <= UNFINISHED:
        reason = f"it has files in it and no {RUN}, so it is no run directory"
        raise RunDirectoryError(path, reason, OTHER_DIRECTORY)


def _describe(path: Path, config: Mapping[str, Any], requests: str) -> None:
    """Write run.json."""
    description = {
        "format": FORMAT,
        "agentcell": __version__,
        "protocol": PROTOCOL,
        "created": time.time(),
        "requests": requests,
        "config": dict(config),
    }
    put_whole(path / RUN, iter([orjson.dumps(description, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)]))

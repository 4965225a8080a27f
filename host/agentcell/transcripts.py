"""Conversations that are kept, each in a directory of its own and there to be resumed.

The CLI writes into that directory while the session runs, so that even a host that is killed loses nothing.

    ROOT/SESSION_ID/PROJECT/SESSION_ID.jsonl    and what belongs to it in SESSION_ID/ beside it
"""

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from pathlib import Path
from uuid import UUID

from agentcell.hold import held
from agentcell_protocol.errors import Category, SessionError, session_error

Keep = bool | str | PathLike[str]
"""Where conversations are kept: in the user's state directory, not at all, or in a directory of the caller's."""

KEPT_SECONDS = 7 * 24 * 3600.0
"""In the user's state directory, since it was last gone on with: long enough to come back after a week-end."""

PRIVATE_DIRECTORY, PRIVATE_FILE = 0o700, 0o600


class OccupiedError(Exception):
    """Another session has this id at the moment, or had it before."""

    def __init__(self, session_id: str, *, is_live: bool) -> None:
        self.session_id = session_id
        self.is_live = is_live
        super().__init__(session_id)

    def as_session_error(self) -> SessionError:
        """The same, as the `error` of a result."""
        state, hint = "is in use", "wait for the session that has it, or give another id"
        if not self.is_live:
            state, hint = "was used before", "go on with it with resume, or give another id"
        message = f"the session id {self.session_id} {state}"
        return session_error(Category.UNKNOWN_SESSION, message, hint=hint, session_id=self.session_id)


def state_directory(environment: Mapping[str, str]) -> Path:
    """Where a user's programs keep what should outlast them: ours is `agentcell` in $XDG_STATE_HOME."""
    root = environment.get("XDG_STATE_HOME", "")
    home = environment.get("HOME")
    own = Path(root) if os.path.isabs(root) else (Path(home) if home else Path.home()) / ".local/state"  # noqa: PTH117
    return own / "agentcell"


def kept_root(environment: Mapping[str, str]) -> Path:
    """Where conversations are kept when nobody says otherwise."""
    return state_directory(environment) / "transcripts"


def is_session_id(text: str | None) -> bool:
    """Whether it can be the id of a conversation, and so the name of its directory."""
    with suppress(ValueError):
        return text is not None and str(UUID(text)) == text.lower()
    return False


@contextmanager
def conversation(root: Path, session_id: str) -> Iterator[Path]:
    """The directory (0700) of the conversation, made if need be, and nobody else's meanwhile.

    Raises OccupiedError while another session has it, and OSError when it cannot be made.
    """
    with ExitStack() as holding:
        directory = _make(root, session_id)
        try:
            holding.enter_context(held(directory))
        except BlockingIOError:
            raise OccupiedError(session_id, is_live=True) from None
        try:
            yield directory
        finally:
            _tidy(root, session_id)


def find(folder: Path, session_id: str) -> Path | None:
    """The conversation's file in one of the folders in `folder`, if it is there."""
    return next(folder.glob(f"*/{session_id}.jsonl"), None)


def restore(folder: Path, session_id: str, sources: Iterable[Path]) -> None:
    """Copy the conversation into `folder`, unless it is there, from the first of the `sources` that has it."""
    if find(folder, session_id) is not None:
        return
    for source in sources:
        if (file := find(source, session_id)) is not None:
            project = folder / file.parent.name
            project.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
            shutil.copy2(file, project)
            with suppress(FileNotFoundError):
                shutil.copytree(file.with_suffix(""), project / session_id, symlinks=True, dirs_exist_ok=True)
            return


def prune(root: Path, *, older_than: float = KEPT_SECONDS) -> None:
    """Remove conversations that nobody has and nobody went on with for so many seconds. Blocks."""
    with suppress(OSError), os.scandir(root) as entries:
        for entry in filter(lambda entry: is_session_id(entry.name), entries):
            with suppress(OSError):  # other sessions remove theirs meanwhile
                _remove_old(entry, older_than)


def _remove_old(entry: "os.DirEntry[str]", older_than: float) -> None:
    if time.time() - entry.stat().st_mtime > older_than:
        with held(Path(entry.path)):
            shutil.rmtree(entry.path, ignore_errors=True)


def _make(root: Path, session_id: str) -> Path:
    for directory in (root.parent, root, root / session_id):
        directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    os.utime(directory)
    return directory


def _tidy(root: Path, session_id: str) -> None:
    """What was said in the session's other conversations gets directories of their own; nothing stays without use."""
    directory = root / session_id
    with suppress(OSError):
        for file in directory.glob("*/*.jsonl"):
            if file.stem != session_id and is_session_id(file.stem):
                _move(file, root / file.stem / file.parent.name)
    for folder, _, files in os.walk(directory, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()  # those that are empty
        for name in files:
            _restrict(Path(folder, name), PRIVATE_FILE)
        _restrict(Path(folder), PRIVATE_DIRECTORY)


def _move(file: Path, project: Path) -> None:
    with suppress(OSError):
        _make(project.parent.parent, project.parent.name)
        project.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        for path in (file, file.with_suffix("")):
            if path.exists():
                path.rename(project / path.name)


def _restrict(path: Path, mode: int) -> None:
    with suppress(OSError):
        if not path.is_symlink():
            path.chmod(mode)

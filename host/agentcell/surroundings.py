"""What a cell has to itself: its temporary files, its config, and the place of its conversation."""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from agentcell.config import is_private, prepare_config
from agentcell.scratch import remove, scratch, sweep_stale
from agentcell.tidying import Tidying
from agentcell.transcripts import Keep, OccupiedError, conversation, find, is_session_id, kept_root, prune, restore
from agentcell_protocol.credentials import CONFIG_DIRECTORY, config_directory
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import Notice, SessionResult

TEMPORARY = ("TMPDIR", "CLAUDE_CODE_TMPDIR")
"""Where the worker, its tools and the CLI put their temporary files."""

_TIDYING = Tidying()


class Surroundings:
    """Of one cell, from before its start until nothing is left of it; to be entered, which raises OSError.

    `request` has the id of its session; `is_fresh` says that the id was made for it, so that nobody else can have it:
    otherwise entering raises OccupiedError when somebody has. Afterwards `variables` lead the cell there, and `notices`
    say what could not be had.
    """

    def __init__(
        self, request: SessionRequest, environment: Mapping[str, str], *, keep: Keep = True, is_fresh: bool = False
    ) -> None:
        self.variables: dict[str, str] = {}
        self.notices: list[Notice] = []
        self._request = request
        self._is_fresh = is_fresh
        self._keep = keep
        self._environment = environment
        self._user_config = config_directory({**environment, **(request.env or {})})
        self._kept = kept_root(environment)
        self._root = self._kept
        self._folder: Path | None = None
        self._lifetime = ExitStack()
        self._conversation = ExitStack()
        self._directory = Path()

    def __enter__(self) -> Self:
        with ExitStack() as lifetime:
            self._directory = lifetime.enter_context(scratch(self._environment))
            lifetime.push(self._conversation)
            self._prepare()
            self._lifetime = lifetime.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lifetime.close()

    def clear(self) -> None:
        """Remove what is not to be kept; now and then also what is old and what killed hosts have left. Blocks."""
        self._conversation.close()
        remove(self._directory)
        if _TIDYING.is_due(self._directory.parent):
            sweep_stale(self._environment)
        if self._root == self._kept and _TIDYING.is_due(self._kept):
            prune(self._kept)

    def described(self, result: SessionResult) -> SessionResult:
        """The result with the place where its conversation is kept, and with the notices."""
        transcript = self._transcript(result.session_id)
        warnings = [*result.warnings, *self.notices]
        return result.model_copy(update={"transcript": transcript and str(transcript), "warnings": warnings})

    def _transcript(self, session_id: str | None) -> Path | None:
        if self._keep is False or self._folder is None or session_id is None or not is_session_id(session_id):
            return None
        with suppress(OSError):  # without a descriptor left it is there, and cannot be seen
            return find(self._folder, session_id) or find(self._root / session_id, session_id)
        return None

    def _prepare(self) -> None:
        temporary = self._directory / "tmp"
        temporary.mkdir(mode=0o700)
        self.variables = dict.fromkeys(TEMPORARY, str(temporary))
        session_id = self._request.session_id or self._request.resume
        if is_private(self._request, self._environment):
            config = self._directory / "config"
            prepare_config(config, self._user_config, self._request)
            self.variables[CONFIG_DIRECTORY] = str(config)
            if is_session_id(session_id):
                (config / "projects").symlink_to(self._open(str(session_id)))
        else:
            self._folder = self._user_config / "projects"
            if is_session_id(session_id) and not self._is_fresh:
                self._share(str(session_id))

    def _open(self, session_id: str) -> Path:
        """The directory of the conversation, with what was said until now if it is to be resumed."""
        temporary = self._directory / "transcripts"
        self._root = temporary if self._keep is False else self._kept if self._keep is True else Path(self._keep)
        try:
            folder = self._hold(self._root, session_id)
        except OSError as problem:
            message = f"the conversation cannot be kept in {self._root}: {problem.strerror}"
            self.notices.append(Notice(code="transcript_not_kept", message=message))
            self._root, self._keep = temporary, False
            folder = self._hold(temporary, session_id)
        self._folder = folder.absolute()
        if self._request.resume:
            restore(self._folder, session_id, (self._kept / session_id, self._user_config / "projects"))
        elif not self._is_fresh and find(self._folder, session_id):
            raise OccupiedError(session_id, is_live=False)
        return self._folder

    def _share(self, session_id: str) -> None:
        """Keep others from a conversation that lies in the user's config, and bring it there to be resumed."""
        with suppress(OSError):
            self._hold(self._kept, session_id)
        if self._request.resume and self._folder is not None:
            with suppress(OSError):
                restore(self._folder, session_id, (self._kept / session_id,))

    def _hold(self, root: Path, session_id: str) -> Path:
        return self._conversation.enter_context(conversation(root, session_id))

"""The actor of a node: it starts the node's keeper, holds its lifeline, and says where it is."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from agentcell.executors.paths import missing
from agentcell.executors.ray.keeping import Keeping
from agentcell_protocol.version import __version__


class NodeActor:
    """To be made an actor by Ray, with some threads; `settings` are those of `talk.RaySettings`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._keeping: Keeping | None = None
        self._starting = Lock()

    def look(self, directories: Sequence[str]) -> dict[str, Any]:
        """What its bridge wants to know of a node: our version there, and which directories it does not have."""
        return {"version": __version__, "missing": missing(directories)}

    def address(self) -> str:
        """The path of the keeper's socket; a new keeper's, if there is none any more. Raises OSError."""
        return self._kept().address

    def say(self, line: bytes) -> None:
        """Pass a line on to the keeper, if there is one."""
        if self._keeping is not None:
            self._keeping.say(line)

    def settle(self, markers: Sequence[str]) -> int:
        """End what is left of these on this node; how many processes were. Raises OSError."""
        return self._kept().settle(markers)

    def close(self) -> None:
        """Have the keeper end, and all its cells first; returns when it has."""
        with self._starting:
            if self._keeping is not None:
                self._keeping.close()

    def _kept(self) -> Keeping:
        with self._starting:
            if self._keeping is None or self._keeping.is_over:
                self._keeping = Keeping(self._settings)
            return self._keeping

"""Running checks: each scene that one of them needs is played once, a few at a time."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from agentcell.conformance.check import Check, Finding, Scene, judged
from agentcell.conformance.stage import Seen, Setting, Stage, stage

AT_ONCE = 2
"""Scenes that are played at a time: much of each is waiting."""


class BrokenOff(Exception):  # noqa: N818 - it was asked for
    """The checks were broken off, for this reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Checking:
    """Checks that are run, until another thread breaks it off."""

    def __init__(self, checks: Sequence[Check], setting: Setting, *, at_once: int = AT_ONCE) -> None:
        self._checks = checks
        self._setting = setting
        self._at_once = at_once
        self._stages: list[Stage] = []
        self._reason: str | None = None

    def cancel(self, reason: str) -> None:
        """Break it off: what was started is killed, and nothing more is begun. The first reason is told."""
        self._reason = self._reason or reason
        for one in self._stages:
            one.break_off()

    def findings(self) -> Iterator[Finding]:
        """In the order of the checks, each as soon as it is known. Blocks. Raises BrokenOff and CommandError."""
        scenes = {scene.name: scene for check in self._checks for scene in check.scenes}
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="conformance") as pool:
            played = {name: pool.submit(self._play, scene) for name, scene in scenes.items()}
            try:
                for check in self._checks:
                    yield judged(check, [played[scene.name].result() for scene in check.scenes])
            finally:
                self.cancel("the end")
                pool.shutdown(cancel_futures=True)

    def _play(self, scene: Scene) -> Seen:
        with stage(scene.name, self._setting, scene.script) as surroundings:
            self._stages.append(surroundings)
            self._raise_if_broken_off()
            seen = scene.play(surroundings)
            self._raise_if_broken_off()
            return seen

    def _raise_if_broken_off(self) -> None:
        if self._reason is not None:
            raise BrokenOff(self._reason)

"""Running checks: each scene that one of them needs is played once, a few at a time."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from agentcell.conformance.check import Check, Finding, Scene, judged
from agentcell.conformance.stage import Seen, Setting, Stage, stage

AT_ONCE = 2
"""Scenes that are played at a time: much of each is waiting."""


class _Stages:
    """Those on which something is played, or was."""

    def __init__(self) -> None:
        self._stages: list[Stage] = []
        self._are_over = False

    def add(self, one: Stage) -> None:
        self._stages.append(one)
        if self._are_over:
            one.break_off()

    def break_off(self) -> None:
        self._are_over = True
        for one in self._stages:
            one.break_off()


def run_checks(checks: Sequence[Check], setting: Setting, *, at_once: int = AT_ONCE) -> Iterator[Finding]:
    """The findings in the order of the checks, each as soon as it is known. Raises CommandError."""
    stages = _Stages()
    scenes = {scene.name: scene for check in checks for scene in check.scenes}
    with ThreadPoolExecutor(at_once, thread_name_prefix="conformance") as pool:
        played = {name: pool.submit(_played, scene, setting, stages) for name, scene in scenes.items()}
        try:
            for check in checks:
                yield judged(check, [played[scene.name].result() for scene in check.scenes])
        except BaseException:
            for waiting in played.values():
                waiting.cancel()
            stages.break_off()
            raise


def _played(scene: Scene, setting: Setting, stages: _Stages) -> Seen:
    with stage(scene.name, setting, scene.script) as surroundings:
        stages.add(surroundings)
        return scene.play(surroundings)

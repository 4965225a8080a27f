"""Running checks: each scene that one of them needs is played once, a few at a time."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from agentcell.conformance.check import Check, Finding, Scene, judged
from agentcell.conformance.stage import Seen, Setting, Stage, stage

AT_ONCE = 2
"""Scenes that are played at a time: much of each is waiting."""


def run_checks(checks: Sequence[Check], setting: Setting, *, at_once: int = AT_ONCE) -> Iterator[Finding]:
    """The findings in the order of the checks, each as soon as it is known. Raises OSError if it does not start."""
    stages: list[Stage] = []
    scenes = {scene.name: scene for check in checks for scene in check.scenes}
    with ThreadPoolExecutor(at_once, thread_name_prefix="conformance") as pool:
        played = {name: pool.submit(_played, scene, setting, stages) for name, scene in scenes.items()}
        try:
            for check in checks:
                yield judged(check, [played[scene.name].result() for scene in check.scenes])
        except BaseException:
            _break_off(list(played.values()), stages)
            raise


def _played(scene: Scene, setting: Setting, stages: list[Stage]) -> Seen:
    with stage(scene.name, setting, scene.script) as surroundings:
        stages.append(surroundings)
        return scene.play(surroundings)


def _break_off(played: list[Future[Seen]], stages: list[Stage]) -> None:
    """What has not begun does not begin, and what is waited for elsewhere is over."""
    for one in played:
        one.cancel()
    for surroundings in stages:
        surroundings.break_off()

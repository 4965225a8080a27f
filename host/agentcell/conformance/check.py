"""A check: what of a program is judged, by what was seen of it, and how that can turn out."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentcell.conformance.stage import Seen, Stage

Grade = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Scene:
    """What is done to a program: `play` starts it on a stage whose model follows `script`."""

    name: str
    play: Callable[[Stage], Seen]
    script: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """A rule: `judge` is given what was seen of each of the scenes, and raises `Unmet` or `NotTried`."""

    number: str
    title: str
    remedy: str
    scenes: tuple[Scene, ...]
    judge: Callable[..., None]


@dataclass(frozen=True, slots=True)
class Finding:
    """How a check turned out: what was `expected`, what `came`, and the `remedy`, unless it passed."""

    number: str
    title: str
    grade: Grade
    expected: str = ""
    came: str = ""
    remedy: str = ""


class Unmet(Exception):  # noqa: N818 - it is a judgement, not a mistake
    """The program does not do as the check says."""

    def __init__(self, expected: str, came: str) -> None:
        self.expected = expected
        self.came = came
        super().__init__(f"expected {expected}; came {came}")


class NotTried(Exception):  # noqa: N818 - as above
    """The check means nothing for a program that is as this one."""


def expect(is_met: bool, expected: str, came: object) -> None:
    """Raise `Unmet` if it is not; what came is text for people, or a value of a message."""
    if not is_met:
        raise Unmet(expected, came if isinstance(came, str) else told(came))


def told(value: object) -> str:
    """A value as JSON has it."""
    return json.dumps(value, ensure_ascii=False, default=lambda other: sorted(map(str, other)))


def judged(check: Check, seen: list[Seen]) -> Finding:
    """The finding of a check."""
    try:
        check.judge(*seen)
    except Unmet as unmet:
        return Finding(check.number, check.title, "failed", unmet.expected, unmet.came, check.remedy)
    except NotTried as reason:
        return Finding(check.number, check.title, "skipped", remedy=str(reason))
    except (AttributeError, LookupError, TypeError):  # a judge reads messages as if they followed the protocol
        expected, came = "messages that follow their schema", "one that lacks a member, or has a value of another kind"
        return Finding(check.number, check.title, "failed", expected, came, check.remedy)
    return Finding(check.number, check.title, "passed")

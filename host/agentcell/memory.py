"""Memory that is left on this machine, or to the control group that this process lives in, whichever is less."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import anyio
import psutil

MEBIBYTE = 1_048_576

PUT_BACK_SHARE = 0.5
"""Of the memory that must be free to start a cell: below it one that runs has to make room."""

LOOK_SECONDS = 1.0
"""Between two looks at how much is free."""

_V2_FILES = ("memory.max", "memory.current", "inactive_file")
_V1_FILES = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
"""Where the limit and the use stand, and the line of memory.stat with the cache that the kernel would give up."""


def has_room(free_mb: float, min_free_mb: float) -> bool:
    """Whether another cell may start."""
    return free_mb >= min_free_mb


def is_scarce(free_mb: float, min_free_mb: float) -> bool:
    """Whether the youngest cell has to end."""
    return free_mb < min_free_mb * PUT_BACK_SHARE


async def watch(free_mb: Callable[[], float], min_free_mb: float, on_scarce: Callable[[], object]) -> None:
    """Look at it for ever, and say whenever it is scarce; not at all when none must be free."""
    while min_free_mb:
        await anyio.sleep(LOOK_SECONDS)
        if is_scarce(free_mb(), min_free_mb):
            on_scarce()


def free_mb(root: Path = Path("/")) -> float:
    """MB (of 1,048,576 bytes) that can be had before something is swapped out or killed; `root` is for tests."""
    available = _lines(root / "proc/meminfo").get("MemAvailable:")
    machine = psutil.virtual_memory().available / MEBIBYTE if available is None else available / 1024
    return min([machine, *_free_of_groups(root)])


def _free_of_groups(root: Path) -> Iterator[float]:
    """What each group that holds this process has left, as far as it has a limit."""
    for folder, names in _groups(root):
        limit, used = _number(folder / names[0]), _number(folder / names[1])
        if limit is not None and used is not None:
            cache = _lines(folder / "memory.stat").get(names[2], 0)
            yield max(0.0, limit - used + cache) / MEBIBYTE


def _groups(root: Path) -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """The group and those around it; a container may see only the outermost, whatever its path is called."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        group = PurePosixPath(path)
        for place in (group, *group.parents):
            yield mount / str(place).lstrip("/"), _V1_FILES if controllers else _V2_FILES


def _lines(file: Path) -> Mapping[str, int]:
    """The first number of each line, by the word before it."""
    words = (line.split() for line in _text(file).splitlines())
    return {parts[0]: int(parts[1]) for parts in words if len(parts) > 1 and parts[1].isdigit()}


def _number(file: Path) -> int | None:
    text = _text(file).strip()
    return int(text) if text.isdigit() else None


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""

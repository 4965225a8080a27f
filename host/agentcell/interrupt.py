"""Ctrl-C in a program that runs sessions."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def plain_interrupt() -> Iterator[None]:
    """Let a KeyboardInterrupt out as what it is: trio raises it in any task, in ours as well."""
    try:
        yield
    except BaseExceptionGroup as group:
        if (interrupts := group.subgroup(KeyboardInterrupt)) is None:
            raise
        raise _first(interrupts) from group


def _first(group: BaseExceptionGroup[KeyboardInterrupt]) -> KeyboardInterrupt:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error

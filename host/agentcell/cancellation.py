"""Telling a cancellation that was asked for from foreign code's own: something that it waited for was cancelled."""

import math

import anyio


def is_cancelled() -> bool:
    """Whether a scope around this task is cancelled, so that a cancellation here is not foreign code's own."""
    return anyio.current_effective_deadline() == -math.inf

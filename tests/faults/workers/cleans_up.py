"""Answers SIGTERM with a `cancelled` result."""

import signal
import sys
from types import FrameType
from typing import Any

import wire


def cancel(_number: int, _frame: FrameType | None) -> None:
    error = {"category": "cancelled", "message": "cancelled by SIGTERM", "partial_response": "half"}
    members: dict[str, Any] = {
        "error": {**error, "details": {"signal": "SIGTERM"}},
        "usage": {"input_tokens": 7},
        "cost_usd": 0.5,
    }
    wire.say(**wire.result_of(response="cancelled by SIGTERM", **{**members, "status": "error"}))
    sys.exit(143)


signal.signal(signal.SIGTERM, cancel)
wire.take_request()
wire.start()
wire.hang()

"""A turn of the script as the bytes of an answer: a stream of server-sent events, or one JSON body."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from agentcell.offline.script import ApiError, Turn

PIECE = 8192
"""Characters in one delta when the script does not say how many chunks an answer has."""


def streamed(turn: Turn, model: str) -> Iterator[bytes]:
    """The events of an answer, one at a time."""
    usage = turn.usage.model_dump()
    yield _event({"type": "message_start", "message": _message(model, {**usage, "output_tokens": 0})})
    for index, block in enumerate(blocks(turn)):
        yield from _streamed_block(index, block, turn.chunks)
    delta = {"stop_reason": turn.reason, "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": delta, "usage": usage})
    yield _event({"type": "message_stop"})


def whole(turn: Turn, model: str) -> bytes:
    """The same answer for a request that does not stream."""
    message = _message(model, turn.usage.model_dump())
    return encode({**message, "content": blocks(turn), "stop_reason": turn.reason})


def error_body(error: ApiError) -> bytes:
    """The body of an error of the API."""
    return encode({"type": "error", "error": {"type": error.name, "message": error.message}})


def blocks(turn: Turn) -> list[dict[str, Any]]:
    """The content of an answer."""
    content: list[dict[str, Any]] = []
    if turn.thinking is not None:
        content.append({"type": "thinking", "thinking": turn.thinking, "signature": "offline"})
    content += [{"type": "text", "text": text * turn.repeat} for text in turn.text]
    content += [
        {"type": "tool_use", "id": f"toolu_{uuid4().hex}", "name": call.name, "input": call.input}
        for call in turn.tools
    ]
    return content


def encode(value: Any) -> bytes:
    """JSON as the API sends it; lone surrogates, which UTF-8 and orjson do not know, are escaped."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def _message(model: str, usage: dict[str, int]) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _streamed_block(index: int, block: dict[str, Any], chunks: int | None) -> Iterator[bytes]:
    empty, deltas = _deltas(block, chunks)
    yield _event({"type": "content_block_start", "index": index, "content_block": empty})
    for delta in deltas:
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
    yield _event({"type": "content_block_stop", "index": index})


def _deltas(block: dict[str, Any], chunks: int | None) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    match block["type"]:
        case "text":
            pieces = _pieces(block["text"], chunks)
            return {"type": "text", "text": ""}, ({"type": "text_delta", "text": piece} for piece in pieces)
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
            return {"type": "thinking", "thinking": "", "signature": ""}, iter(deltas)
        case _:
            pieces = _pieces(json.dumps(block["input"]), chunks)
            return {**block, "input": {}}, ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)


def _pieces(text: str, chunks: int | None) -> Iterator[str]:
    size = PIECE if chunks is None else max(1, -(-len(text) // chunks))
    return (text[at : at + size] for at in range(0, len(text), size))


def _event(data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (data["type"].encode(), encode(data))

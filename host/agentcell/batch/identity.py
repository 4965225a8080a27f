"""Who a row is: the digest of what it asks for, the name it gets from that, and its folder."""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import orjson

from agentcell_protocol.codec import encode

DIGEST_VERSION = 1
"""Stands before each digest. It changes with what goes into one, so that digests of two kinds are never compared."""

DIGEST_LENGTH = 16
"""Hexadecimal digits: among ten thousand rows that are edited, one in a billion batches overlooks an edit."""

NAME_LENGTH = 12
"""Of these digits, in the name of a row that has none."""

OPERATIONAL = frozenset(
    {
        "protocol",
        "id",
        "session_name",
        "events",
        "lifeline",
        "result_file",
        "cli_path",
        "env",
        "limits",
    }
)
"""Members that say how a session is run and what it is called, not what it is to do."""

SLUG_LENGTH = 40
"""Characters of an id that are shown in the name of its folder."""

SLUG_DIGITS = 16
"""Hexadecimal digits behind them: enough to tell any number of ids apart of which nothing can be shown."""

UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
"""What is not the same in the names of files everywhere, and in a shell."""


def digest(members: Mapping[str, Any]) -> str:
    """The digest of a row, such as `1:0123456789abcdef`: the same for all that ask for the same.

    `members` are the row's own and those of the defaults. A member that is null is one that is not there.
    """
    content = {name: value for name, value in members.items() if name not in OPERATIONAL and value is not None}
    return f"{DIGEST_VERSION}:{sha256(_canonical(content)).hexdigest()[:DIGEST_LENGTH]}"


def default_name(digest: str) -> str:
    """The name of a row that has none, such as `row-0123456789ab`."""
    return f"row-{digest.partition(':')[2][:NAME_LENGTH]}"


def slug(id: str) -> str:  # noqa: A002 - it is what it is called everywhere
    """The name of an id's folder: readable where the id is, safe whatever it is, and another for each."""
    shown = UNSAFE.sub("_", id)[:SLUG_LENGTH].lstrip(".-") or "_"
    return f"{shown}-{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:SLUG_DIGITS]}"


def _canonical(content: Mapping[str, Any]) -> bytes:
    """The content as JSON with its keys in order; what is nested too deep is cut, as it is when it is sent."""
    try:
        return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return orjson.dumps(orjson.loads(encode(content)), option=orjson.OPT_SORT_KEYS)

"""Answers with the length of the request's message, its variables and where it runs."""

import json
import os
from pathlib import Path

import wire

request = wire.take_request()
seen = {
    "message": len(request["starting_message"]),
    "asked": [request["events"], request["lifeline"]],
    "directory": str(Path.cwd()),
    "scratch": [os.environ["TMPDIR"], os.environ["CLAUDE_CODE_TMPDIR"]],
    "mode": oct(Path(os.environ["TMPDIR"]).stat().st_mode & 0o777),
    "drain": os.environ["AGENTCELL_DRAIN_SECONDS"],
    "names": sorted(name for name in os.environ if name != "LC_CTYPE"),
}
wire.say(**wire.result_of(response=json.dumps(seen)))

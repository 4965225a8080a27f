"""Answers what it is asked; but what could go wrong takes it until its stdin ends.

Where there is a pipe `up`, everything does, and it says there that it has begun.
"""

import sys
from pathlib import Path

import wire

request = wire.take_request()
message = request["starting_message"]
wire.start()
if is_up := Path("up").is_fifo():
    Path("up").write_text("up\n")
if is_up or "wrong" in message:
    sys.stdin.buffer.read()
    sys.exit()
answer = 'Tests, and "docs" ✅.' if "missing" in message else "A shop."
wire.say(type="text", text=answer)
wire.say(**wire.result_of(request["session_name"], answer))

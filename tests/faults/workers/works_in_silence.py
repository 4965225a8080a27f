"""Begins a tool that says nothing; with `done` in argv it also ends it."""

import sys

import wire

wire.take_request()
wire.start()
wire.say(type="tool_use", id="t1", name="Bash", input={"command": "make"})
if "done" in sys.argv:
    wire.say(type="tool_result", id="t1", is_error=False, bytes=0)
wire.hang()

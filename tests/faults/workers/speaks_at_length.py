"""Writes an event of as many mebibytes as argv says, and then its result."""

import sys

import wire

wire.take_request()
wire.start()
wire.say(type="text", text="x" * (int(sys.argv[1]) * 1024 * 1024))
wire.say(**wire.result_of())

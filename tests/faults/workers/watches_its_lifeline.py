"""Ends when its stdin does."""

import sys

import wire

wire.take_request()
wire.start()
rest = sys.stdin.buffer.read()
wire.say(**wire.result_of(response=f"stdin ended after {len(rest)} bytes"))

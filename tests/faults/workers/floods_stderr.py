"""Writes the mebibytes in argv to stderr, the last of them without a line end, before its result."""

import os
import sys

import wire

wire.take_request()
wire.start()
line = b"x" * 1023 + b"\n"
for _ in range(int(sys.argv[1])):
    os.write(2, line * 1024)
os.write(2, b"y" * 100_000)
os.write(2, b"the end, with " + os.environ["ANTHROPIC_API_KEY"].encode() + b" and sk-ant-other_key-1")
wire.say(**wire.result_of())

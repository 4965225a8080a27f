"""Writes an answer with an emoji, a line separator and a NUL byte by byte."""

import json

import wire

wire.take_request()
wire.start()
line = json.dumps(wire.result_of(response="🦊\u2028\x00"), ensure_ascii=False).encode() + b"\n"
for byte in line:
    wire.write(bytes([byte]))

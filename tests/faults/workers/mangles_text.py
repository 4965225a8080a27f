"""Writes bytes that are not UTF-8 to both streams."""

import json
import os

import wire

wire.take_request()
wire.start()
os.write(2, b"bad \xff byte\n")
wire.write(json.dumps(wire.result_of(response="bad @ byte")).encode().replace(b"@", b"\xff") + b"\n")

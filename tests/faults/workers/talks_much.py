"""Writes as many small events as argv says, and then its result."""

import sys

import wire

wire.take_request()
for number in range(int(sys.argv[1])):
    wire.say(type="text", text=str(number))
wire.say(**wire.result_of())

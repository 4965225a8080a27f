"""Gives its result, or with `outcome` in argv only its outcome, and lives on."""

import sys

import wire

wire.take_request()
wire.start()
if "outcome" in sys.argv:
    wire.say(type="outcome", result=wire.result_of())
else:
    wire.say(**wire.result_of())
wire.hang()

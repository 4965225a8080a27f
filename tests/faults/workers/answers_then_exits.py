"""Gives its result and then exits with the code in argv."""

import sys

import wire

wire.take_request()
wire.start()
wire.say(**wire.result_of())
sys.exit(int(sys.argv[1]))

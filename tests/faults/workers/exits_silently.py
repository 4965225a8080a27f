"""Exits with the code in argv and without a result."""

import sys

import wire

wire.take_request()
wire.start()
sys.exit(int(sys.argv[1]))

"""Prints what is no message, and then its result."""

import wire

wire.take_request()
wire.start()
wire.write(b'Loading...\n[1, 2]\n{"half": \n\n   \n{"type": 7}\nno line end: {"x": 1}\n')
wire.say(**wire.result_of())

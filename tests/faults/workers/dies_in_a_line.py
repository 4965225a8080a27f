"""Is killed by the signal named in argv in the middle of a line."""

import signal
import sys

import wire

wire.take_request()
wire.start()
wire.write(b'{"type": "result", "status": "comp')
wire.die(signal.Signals[sys.argv[1]])

"""Leaves a grandchild in a session of its own that holds stdout and stderr, ignores SIGTERM and would write on."""

import os
import signal
import sys

import wire

wire.take_request()
wire.start()
ready, is_ready = os.pipe()
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.set_inheritable(is_ready, True)
    os.execv(sys.executable, [sys.executable, "-c", f"import os, signal; os.write({is_ready}, b'!'); signal.pause()"])
os.close(is_ready)
assert os.read(ready, 1) == b"!"
if "die" in sys.argv:
    wire.die(signal.SIGKILL)
wire.say(**wire.result_of())

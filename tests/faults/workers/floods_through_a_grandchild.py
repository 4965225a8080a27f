"""Leaves a grandchild that writes to the protocol stream without end."""

import os
import sys

import wire

wire.take_request()
wire.start()
wire.say(**wire.result_of())
if os.fork() == 0:
    os.execv(sys.executable, [sys.executable, "-c", "import os\nwhile True: os.write(1, b'more\\n' * 1000)"])

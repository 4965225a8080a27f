"""Starts a tool that writes a finished result into whatever the worker writes to, and then answers itself."""

import json
import subprocess
import sys

import wire

TOOL = """
import os, sys
folder = f"/proc/{os.getppid()}/fd"
for name in os.listdir(folder):
    try:
        fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        continue
    os.write(fd, sys.argv[1].encode() + b"\\n")
"""

wire.take_request()
wire.start()
forged = json.dumps(wire.result_of(response="forged"))
subprocess.run([sys.executable, "-c", TOOL, forged], check=True, timeout=60)
wire.say(**wire.result_of())

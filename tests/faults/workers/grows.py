"""Has a child named hog that takes memory: in `steps`, in one `jump`, or `detached` from it and in steps."""

import ctypes
import os
import sys
import time

import wire

from agentcell_protocol.cell import become_subreaper

MEBIBYTE = 1024 * 1024
STEP, MOST = 100 * MEBIBYTE, 3000 * MEBIBYTE
PAUSE_SECONDS = 0.05
PR_SET_NAME = 15


def hog(jump: bool) -> None:
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"hog")
    taken = []
    for _ in range(MOST // STEP):
        taken.append(bytearray(2 * 1024 * MEBIBYTE if jump else STEP))
        time.sleep(PAUSE_SECONDS)
    wire.hang()


become_subreaper()
wire.take_request()
wire.start()
wire.say(type="usage", input_tokens=3, output_tokens=5)
how = sys.argv[1]
if how == "worker":
    hog(jump=False)
if os.fork() == 0:
    if how == "detached":
        os.setsid()
        if os.fork():
            os._exit(0)
    hog(how == "jump")
wire.hang()

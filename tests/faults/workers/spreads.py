"""Takes many of what argv names: `processes`, `threads`, `descriptors`, `cpu`, or `output`."""

import os
import sys
import threading
import time

import wire


def children() -> None:
    for _ in range(20):
        if os.fork() == 0:
            wire.hang()


def threads() -> None:
    for _ in range(20):
        threading.Thread(target=threading.Event().wait, daemon=True).start()


def descriptors() -> None:
    for _ in range(100):
        os.open(os.devnull, os.O_RDONLY)


def cpu() -> None:
    while time.process_time() < 30:
        pass


def output() -> None:
    for _ in range(1000):
        wire.say(type="text", text="x" * 1000)


TAKES = {"processes": children, "threads": threads, "descriptors": descriptors, "cpu": cpu, "output": output}

wire.take_request()
wire.start()
TAKES[sys.argv[1]]()
wire.hang()

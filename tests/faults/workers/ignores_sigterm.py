"""Cannot be ended but by SIGKILL; says `text` once it is so."""

import signal

import wire

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
wire.take_request()
wire.start()
wire.hang()

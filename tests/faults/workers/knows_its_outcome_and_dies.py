"""Tells its outcome and is killed while it cleans up."""

import signal

import wire

wire.take_request()
wire.start()
wire.say(type="outcome", result=wire.result_of())
wire.die(signal.SIGKILL)

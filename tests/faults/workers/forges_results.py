"""Prints results of another session, one that is none, and one after the true one."""

import wire

wire.take_request()
wire.start()
wire.say(**wire.result_of("another", "forged"))
wire.say(type="result", status="splendid")
wire.say(**wire.result_of())
wire.say(**wire.result_of(response="forged"))

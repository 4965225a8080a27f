"""Says something, and then nothing; a SIGTERM ends it without a word."""

import wire

wire.take_request()
wire.start()
wire.say(type="usage", input_tokens=3, output_tokens=5)
wire.hang()

"""Answers with a line of as many bytes as argv says."""

import json
import sys

import wire

wire.take_request()
wire.start()
bare = wire.result_of(response="")
wire.say(**{**bare, "response": "x" * (int(sys.argv[1]) - len(json.dumps(bare)) - 1)})

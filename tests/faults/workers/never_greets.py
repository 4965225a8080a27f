"""Takes the request and says nothing."""

import wire

wire.take_request()
wire.hang()

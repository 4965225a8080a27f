"""Does not even take the request."""

import wire

wire.hang()

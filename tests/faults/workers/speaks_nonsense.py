"""Prints only what is no message, and exits as if all was well."""

import wire

wire.take_request()
wire.write(b"All done!\n")

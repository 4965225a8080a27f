"""Ends as a program with a mistake in it does, with much on stderr."""

import wire

wire.take_request()
raise ValueError("x" * 60_000 + " the very end")

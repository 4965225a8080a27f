"""The versions that a message may name."""

__version__ = "0.1.0"
"""The distribution's version, the one `agentcell --version` prints."""

PROTOCOL = 1
"""The version of the wire."""

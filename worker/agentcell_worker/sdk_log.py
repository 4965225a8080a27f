"""What the SDK says only to its log."""

import logging
from collections.abc import Callable

from agentcell_protocol.sdk import PACKAGE

READER = f"{PACKAGE}._internal.transport.subprocess_cli"
"""Reads the CLI's lines, and says which it passes over at level DEBUG."""

PASSED_OVER = "Skipping non-JSON line"


def mute_sdk() -> None:
    """Keep it off stderr: it calls each CLI that was ended a fatal error; what matters of that is in the result."""
    logging.getLogger(PACKAGE).addHandler(logging.NullHandler())


class SdkLogHandler(logging.Handler):
    """Hears the SDK's warnings, and each line of the CLI that it passes over, from `open` to `close`."""

    def __init__(self, on_warning: Callable[[str], object], on_passed_over: Callable[[str], object]) -> None:
        super().__init__()
        self._on_warning = on_warning
        self._on_passed_over = on_passed_over
        self._level_before = logging.NOTSET

    def open(self) -> None:
        """Begin to listen."""
        reader = logging.getLogger(READER)
        self._level_before = reader.level
        reader.setLevel(logging.DEBUG)
        logging.getLogger(PACKAGE).addHandler(self)

    def close(self) -> None:
        """Stop listening; a second time does nothing."""
        logger = logging.getLogger(PACKAGE)
        if self in logger.handlers:
            logger.removeHandler(self)
            logging.getLogger(READER).setLevel(self._level_before)
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record."""
        if record.levelno == logging.WARNING:
            self._on_warning(record.getMessage())
        elif str(record.msg).startswith(PASSED_OVER) and isinstance(record.args, tuple):
            self._on_passed_over(str(record.args[0]))

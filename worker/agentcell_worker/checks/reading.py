"""The text of a file that an agent wrote, or why it is of no use."""

from pathlib import Path

MAX_BYTES = 4 * 1024 * 1024
"""What people or models write is not larger; what is, is not read."""


class UnusableError(Exception):
    """What is wrong with a file as such, in words that follow its name."""


def read_text(path: Path, errors: str = "strict") -> str:
    """The text of a UTF-8 file in which something is written. Raises UnusableError."""
    try:
        text = _content(path).decode("utf-8-sig", errors)
    except FileNotFoundError:
        raise UnusableError("there is no such file") from None
    except UnicodeDecodeError:
        raise UnusableError("is not UTF-8") from None
    except OSError as wrong:
        raise UnusableError(f"cannot be read: {wrong.strerror}") from None
    except ValueError as wrong:  # a name with a null in it, for one
        raise UnusableError(f"cannot be read: {wrong}") from None
    if not text.strip():
        raise UnusableError("is empty")
    return text


def _content(path: Path) -> bytes:
    """Raises OSError, FileNotFoundError; ValueError for what is no path; UnusableError."""
    if path.exists() and not path.is_file():
        raise UnusableError("cannot be read: it is no regular file")  # to open a pipe would wait for its writer
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnusableError(f"cannot be read: it is larger than {MAX_BYTES:,} bytes")
    return content

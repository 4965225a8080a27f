"""What a file says, as far as it can be: whoever wrote it may have been cut, or be somebody else."""

BEYOND = 1e11
"""Of seconds and dollars: the year 5138, and more than anybody has."""


def amount(value: object) -> float | None:
    """A time in Unix seconds, a number of seconds or of dollars; None where it can be none."""
    if type(value) is float or type(value) is int:
        return value if 0 <= value < BEYOND else None
    return None


def number(value: object) -> int | None:
    """How many there are of something; None where it can be no such number."""
    return value if type(value) is int and value >= 0 else None

"""What the probes report. Tests run beside them and can write what they like: another shape is no report."""

from pydantic import BaseModel, ConfigDict


class Report(BaseModel):
    """What a probe found out."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Survey(Report):
    """Which tools an interpreter has, and what is wrong with the syntax of files, by file."""

    tools: frozenset[str]
    problems: dict[str, str]


class Collected(Report):
    """How pytest ended, what failed, how many tests it found in each file, and why it could not collect others."""

    exit_code: int
    failed: int
    items: dict[str, int]
    problems: dict[str, str]


class Lines(Report):
    """What tests reach of one file, in percent, and by line."""

    percent: float
    executed: list[int]
    missing: list[int]


class Measured(Collected):
    """What tests reach of a project in percent of its statements, and by file. `fail_under` is its own demand, or 0."""

    fail_under: float
    percent: float
    statements: int
    files: dict[str, Lines]

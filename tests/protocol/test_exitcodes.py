"""Exit codes follow from the result."""

import signal

import pytest

from agentcell_protocol.errors import Category, session_error
from agentcell_protocol.exitcodes import CANCEL_SIGNALS, PAUSED, exit_code, signal_name

SPECIAL = {Category.BAD_REQUEST: 2, Category.TIMEOUT: 124, Category.CANCELLED: 143}


def test_no_error_is_zero() -> None:
    assert exit_code(None) == 0


@pytest.mark.parametrize("category", Category)
def test_an_error_is_one_unless_the_table_says_otherwise(category: Category) -> None:
    assert exit_code(session_error(category, "x")) == SPECIAL.get(category, 1)


@pytest.mark.parametrize(("name", "code"), [("SIGHUP", 129), ("SIGINT", 130), ("SIGTERM", 143), ("SIGODD", 143)])
def test_a_cancelled_session_exits_as_its_signal_would_have_it(name: str, code: int) -> None:
    assert exit_code(session_error(Category.CANCELLED, "x", signal=name)) == code


def test_the_signals_have_their_numbers() -> None:
    assert {name: int(signal.Signals[name]) for name in CANCEL_SIGNALS} == CANCEL_SIGNALS


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (40, "signal 40")])
def test_a_signal_without_a_name_has_its_number(number: int, name: str) -> None:
    assert signal_name(number) == name


def test_a_paused_batch_has_a_code_of_its_own() -> None:
    assert PAUSED == 75

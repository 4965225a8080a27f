"""Places are tidied up now and then, each by itself."""

from pathlib import Path

import pytest

from agentcell.tidying import PERIOD_SECONDS, Tidying


def test_a_place_is_tidied_again_when_the_period_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("agentcell.tidying.time.monotonic", lambda: now[0])
    places = Tidying()
    here, there = Path("/here"), Path("/there")
    assert [places.is_due(place) for place in (here, here, there)] == [True, False, True]
    now[0] += PERIOD_SECONDS - 1
    assert [places.is_due(place) for place in (here, there)] == [False, False]
    now[0] += 1
    assert [places.is_due(place) for place in (here, there, here)] == [True, True, False]

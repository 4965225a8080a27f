"""Where a batch can be told to run."""

import click
import pytest

from agentcell.commands.places import MOST_SHOWN, place
from agentcell.executors.ray import absence

OPTION = click.Option(["--on"])


def on(given: str) -> str | None:
    return place(click.Context(click.Command("batch")), OPTION, given)


def test_without_ray_the_line_that_installs_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absence, "find_spec", lambda _name: None)
    with pytest.raises(click.BadParameter) as refused:
        on("ray")
    assert refused.value.message == "Ray is not installed here; pip install 'agentcell[ray]'"


@pytest.mark.parametrize("given", ["", "here", "ray://", "ray://host", "ray://host:1/", "ray://::1:2", "rays"])
def test_what_names_no_cluster_is_refused(given: str) -> None:
    with pytest.raises(click.BadParameter, match="is no place; give ray, or ray://HOST:PORT"):
        on(given)


def test_of_what_is_far_too_long_for_an_address_only_the_beginning_is_repeated() -> None:
    with pytest.raises(click.BadParameter) as refused:
        on("x" * 100_000)
    assert refused.value.message.partition(" is no place")[0] == repr("x" * (MOST_SHOWN - 1) + "…")


@pytest.mark.parametrize("given", ["ray", "ray://10.0.0.1:6379", "ray://[::1]:6379"])
def test_a_cluster_is_named_by_its_address_or_by_none(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absence, "find_spec", lambda _name: object())
    assert on(given) == given

"""Where a batch can be told to run."""

import click
import pytest

from agentcell.commands.places import place
from agentcell.executors.ray import connecting

OPTION = click.Option(["--on"])


def on(given: str) -> str | None:
    return place(click.Context(click.Command("batch")), OPTION, given)


def test_without_ray_the_line_that_installs_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "find_spec", lambda _name: None)
    with pytest.raises(click.BadParameter) as refused:
        on("ray")
    assert refused.value.message == "Ray is not installed here; pip install 'agentcell[ray]'"


@pytest.mark.parametrize("given", ["", "here", "ray://", "ray://host", "ray://host:1/", "ray://::1:2", "rays"])
def test_what_names_no_cluster_is_refused(given: str) -> None:
    with pytest.raises(click.BadParameter, match="is no place; give ray, or ray://HOST:PORT"):
        on(given)


@pytest.mark.parametrize("given", ["ray", "ray://10.0.0.1:6379", "ray://[::1]:6379"])
def test_a_cluster_is_named_by_its_address_or_by_none(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "find_spec", lambda _name: object())
    assert on(given) == given

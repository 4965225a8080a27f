"""Sessions without a model: on a scripted endpoint on this machine, out of reach of every credential."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from agentcell.environment import inherited_environment
from agentcell.offline.endpoint import Endpoint, ScriptSource, offline_model
from agentcell.offline.environment import offline_environment
from agentcell.scratch import scratch
from agentcell_protocol.request import SessionRequest

ANSWER = "This is a rehearsal: the answer comes from a script on this machine, no model was asked."

SCRIPT: ScriptSource = {
    "turns": [
        {"text": "I will look at what is here.", "tools": [{"name": "Glob", "input": {"pattern": "*"}}]},
        {"text": ANSWER, "chunks": 12, "times": "always"},
    ]
}
"""It looks around and answers, whatever is asked; it changes nothing."""

AWAY_PREFIXES = ("ANTHROPIC_", "CLAUDE_", "AWS_", "GOOGLE_", "CLOUDSDK_", "AZURE_", "VERTEX_")
"""Variables that hold credentials or addresses of a model, or lead to them."""


@contextmanager
def rehearsal(
    surrounding: Mapping[str, str],
    *,
    env: Mapping[str, str] | None = None,
    pass_env: Iterable[str] = (),
    script: ScriptSource = SCRIPT,
) -> Iterator[tuple[Endpoint, dict[str, str]]]:
    """The endpoint that plays `script`, and a cell's environment with a home of its own, for as long as it lasts.

    `env`, and what `pass_env` names of the `surrounding` environment, are added, except for what leads to a model.
    """
    wanted = {name: surrounding[name] for name in pass_env if name in surrounding} | dict(env or {})
    with scratch(surrounding) as home, offline_model(script) as endpoint:
        offline = offline_environment(endpoint, str(home), surrounding)
        yield endpoint, {**inherited_environment(_kept(wanted)), **offline}


def rehearsed(request: SessionRequest) -> SessionRequest:
    """The request without what could lead its session to a real model: variables, and settings that hold some."""
    env = None if request.env is None else _kept(request.env)
    return request.model_copy(update={"env": env, "setting_sources": None})


def _kept(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if not name.startswith(AWAY_PREFIXES)}

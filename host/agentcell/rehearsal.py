"""Sessions without a model: on a scripted endpoint on this machine, out of reach of every credential."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from agentcell.environment import inherited_environment
from agentcell.offline import offline_environment, offline_model
from agentcell.offline.endpoint import ScriptSource
from agentcell_protocol.request import SessionRequest

ANSWER = "This is a rehearsal: the answer comes from a script on this machine, no model was asked."

SCRIPT: ScriptSource = {"turns": [{"text": ANSWER, "chunks": 12, "times": "always"}]}

AWAY_PREFIXES = ("ANTHROPIC_", "CLAUDE_", "AWS_", "GOOGLE_", "CLOUDSDK_", "AZURE_", "VERTEX_")
"""Variables that hold credentials or addresses of a model, or lead to them."""


@contextmanager
def rehearsal_environment(
    surrounding: Mapping[str, str],
    *,
    env: Mapping[str, str] | None = None,
    pass_env: Iterable[str] = (),
    script: ScriptSource = SCRIPT,
) -> Iterator[dict[str, str]]:
    """A cell's environment for as long as the context lasts: a home of its own, and the endpoint that plays `script`.

    `env`, and what `pass_env` names of the `surrounding` environment, are added, except for what leads to a model.
    """
    wanted = {name: surrounding[name] for name in pass_env if name in surrounding} | dict(env or {})
    with TemporaryDirectory(prefix="agentcell-rehearsal-") as home, offline_model(script) as endpoint:
        yield {**inherited_environment(_kept(wanted)), **offline_environment(endpoint, home, surrounding)}


def rehearsed(request: SessionRequest) -> SessionRequest:
    """The request without what could lead its session to a real model: variables, and settings that hold some."""
    env = None if request.env is None else _kept(request.env)
    return request.model_copy(update={"env": env, "setting_sources": None})


def _kept(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if not name.startswith(AWAY_PREFIXES)}

"""What is shown of an order, and of whatever else has an environment: never that."""

from pathlib import Path
from typing import Any

import pytest

from agentcell.batch.settings import Settings as BatchSettings
from agentcell.commands.options import MappingFile
from agentcell.orders import Order
from agentcell.serve.serving import Settings as ServeSettings
from agentcell_protocol.forking import Surroundings
from agentcell_protocol.request import parse_request

SECRET = "sk-ant-test"
ENVIRONMENT = {"ANTHROPIC_API_KEY": SECRET}


def order(directory: Path) -> Order:
    members: dict[str, Any] = {"session_name": "a", "agent_type": "coder", "project_dir": str(directory)}
    servers = {"docs": {"command": "docs", "env": ENVIRONMENT}}
    return Order(parse_request({**members, "env": ENVIRONMENT, "mcp_servers": servers}), environment=ENVIRONMENT)


def test_an_order_shows_no_secret_and_what_it_is_for(tmp_path: Path) -> None:
    shown = repr(order(tmp_path))
    assert SECRET not in shown
    assert str(tmp_path) in shown


@pytest.mark.parametrize(
    "holder",
    [
        BatchSettings(environment=ENVIRONMENT),
        MappingFile("defaults.yaml", {"env": ENVIRONMENT}),
        ServeSettings(0, 1, 2, 3, ENVIRONMENT),
        Surroundings({b"ANTHROPIC_API_KEY": SECRET.encode()}, b"/"),
    ],
    ids=lambda holder: type(holder).__name__,
)
def test_what_else_has_an_environment_does_not_show_it(holder: object) -> None:
    assert SECRET not in repr(holder)

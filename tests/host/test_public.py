"""What `import agentcell` gives, and what it does not load."""

import subprocess
import sys

import agentcell


def test_every_public_name_is_there_and_they_are_sorted() -> None:
    assert sorted(agentcell.__all__) == agentcell.__all__ == dir(agentcell)
    assert all(getattr(agentcell, name) is not None for name in agentcell.__all__)


def test_importing_it_loads_neither_pydantic_nor_the_sdk() -> None:
    code = (
        "import sys, agentcell;"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'pydantic', 'claude_agent_sdk', 'anyio'}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert found.stdout == b"[]\n"


def test_the_host_loads_neither_the_worker_nor_the_sdk() -> None:
    code = (
        "import sys, agentcell; [getattr(agentcell, name) for name in agentcell.__all__];"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'agentcell_worker', 'claude_agent_sdk'}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert found.stdout == b"[]\n"

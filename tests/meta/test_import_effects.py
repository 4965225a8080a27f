"""Importing does nothing, and loads no more than it must."""

import json
import subprocess
import sys

import pytest
from tests.meta.source import MODULES

HEAVY = ["anyio", "claude_agent_sdk", "mcp", "pydantic", "starlette", "uvicorn"]

WAIT_SECONDS = 60


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh Python that sees what a user's would see."""
    argv = [sys.executable, "-B", "-P", *arguments]
    return subprocess.run(
        argv, capture_output=True, text=True, check=True, timeout=WAIT_SECONDS, stdin=subprocess.DEVNULL
    )


def command_line(*arguments: str) -> str:
    """A program that does what the console script does, and goes on."""
    lines = [
        "import sys, agentcell.cli",
        f"sys.argv = {['agentcell', *arguments]}",
        "try:",
        "    agentcell.cli.main()",
        "except SystemExit as ended:",
        "    assert not ended.code",
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "program",
    [
        "import agentcell",
        "import agentcell.cli",
        "import agentcell; dir(agentcell); agentcell.__version__",
        command_line("--help"),
        command_line("run", "--help"),
        command_line("serve", "--help"),
        command_line("batch", "--help"),
        command_line("status", "--help"),
        command_line("stop", "--help"),
        command_line("agents", "--help"),
        command_line("--version"),
    ],
)
def test_a_look_at_the_package_or_its_help_loads_nothing_heavy(program: str) -> None:
    loaded = run("-c", f"{program}\nimport sys\nprint(sorted(set(sys.modules) & set({HEAVY})))").stdout
    assert loaded.splitlines()[-1] == "[]"


def test_what_a_task_on_a_node_has_in_memory_is_nothing_heavy() -> None:
    program = "import agentcell.executors.ray.relay"
    loaded = run("-c", f"{program}\nimport sys\nprint(sorted(set(sys.modules) & set({HEAVY})))").stdout
    assert loaded.splitlines()[-1] == "[]"


IMPORT_ALL = """
import json, os, sys, threading

seen = []
HARMLESS = ("/dev/null",)

def watch(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        if arguments[0] not in HARMLESS:
            seen.append([event, str(arguments[0])])
    elif event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.mkdir", "socket.bind", "socket.connect"):
        seen.append([event, repr(arguments)])

sys.addaudithook(watch)
environment = dict(os.environ)
for name in sys.argv[1:]:
    __import__(name)
handlers = sys.modules["logging"].getLogger().handlers if "logging" in sys.modules else []
print(json.dumps({
    "seen": seen,
    "environment": dict(os.environ) == environment,
    "threads": threading.active_count(),
    "handlers": len(handlers),
}))
"""


def test_importing_any_module_prints_writes_and_starts_nothing() -> None:
    names = [module.name for module in MODULES if not module.name.endswith("__main__")]
    ended = run("-c", IMPORT_ALL, *names)
    assert ended.stderr == ""
    assert json.loads(ended.stdout) == {"seen": [], "environment": True, "threads": 1, "handlers": 0}

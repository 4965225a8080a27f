"""Who may import whom: worker → protocol ← host, and the SDK in three files only."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest
from tests.meta.source import MODULES, ROOMS, ROOT, Module

SDK = "claude_agent_sdk"
SDK_MODULES = {"agentcell_worker.session", "agentcell_worker.client", "agentcell_worker.sdk_errors"}

MAY_IMPORT = {
    "agentcell_protocol": {"agentcell_protocol"},
    "agentcell_worker": {"agentcell_worker", "agentcell_protocol"},
    "agentcell": {"agentcell", "agentcell_protocol"},
}

PROTOCOL_LIBRARIES = {"orjson", "psutil", "pydantic", "pydantic_core", "typing_extensions"}

RAY = "agentcell.executors.ray."
EXECUTORS_OF_RAY = {RAY + name for name in ("executor", "flight", "link", "links", "loss", "verdict")}
"""What the driver has of it: all else is another process's."""

MAX_LINES = 50
"""Of a function, its docstring included: what is longer is two functions."""

each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)


def roots(module: Module) -> set[str]:
    """The top-level packages a module imports, the standard library left out."""
    return {name.partition(".")[0] for name in module.imports()} - sys.stdlib_module_names


@each_module
def test_a_room_imports_only_the_rooms_it_may(module: Module) -> None:
    assert roots(module) & ROOMS.keys() <= MAY_IMPORT[module.package]


@each_module
def test_only_the_session_the_client_and_the_border_of_errors_import_the_sdk(module: Module) -> None:
    assert (SDK in roots(module)) == (module.name in SDK_MODULES)


@each_module
def test_only_the_session_talks_to_the_client(module: Module) -> None:
    text = module.path.read_text("utf-8")
    talks = ".query(" in text or "receive_response" in text
    assert talks == (module.name == "agentcell_worker.session")


@pytest.mark.parametrize("module", [m for m in MODULES if ".checks" in m.name], ids=lambda m: m.name)
def test_what_checks_a_project_knows_no_agent_and_no_session(module: Module) -> None:
    known = {name for name in module.imports() if name.startswith("agentcell_worker.")}
    assert {name for name in known if ".checks" not in name} <= {"agentcell_worker.front_matter"}


@pytest.mark.parametrize("module", [m for m in MODULES if ".probes." in m.name], ids=lambda m: m.name)
def test_what_a_projects_own_interpreter_runs_needs_nothing_of_ours_and_no_new_python(module: Module) -> None:
    assert roots(module) <= {"coverage", "pytest"}
    ast.parse(module.path.read_text("utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("module", [m for m in MODULES if m.name in EXECUTORS_OF_RAY], ids=lambda m: m.name)
def test_who_runs_sessions_on_ray_knows_its_bridge_by_what_is_said_only(module: Module) -> None:
    ours = {name for name in module.imports() if name.startswith(RAY)}
    assert ours <= EXECUTORS_OF_RAY | {f"{RAY}absence", f"{RAY}talk"}


@pytest.mark.parametrize("module", [m for m in MODULES if ".executors.keeper" in m.name], ids=lambda m: m.name)
def test_a_keeper_knows_neither_ray_nor_who_started_it(module: Module) -> None:
    assert [name for name in module.imports() if "ray" in name.split(".")] == []


@pytest.mark.parametrize("module", [m for m in MODULES if m.package == "agentcell_protocol"], ids=lambda m: m.name)
def test_the_protocol_needs_four_libraries(module: Module) -> None:
    assert roots(module) - {"agentcell_protocol"} <= PROTOCOL_LIBRARIES


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = [*project["dependencies"], *extras["testgen"], *extras["ray"]]
    declared = {requirement.partition(">")[0].lower() for requirement in requirements}
    imported = set().union(*(roots(module) for module in MODULES)) - ROOMS.keys()
    owners = packages_distributions()
    distributions = {owners[name][0].lower() for name in imported}
    brought_by_pydantic = {"pydantic_core", "typing_extensions"}
    assert distributions - brought_by_pydantic == declared


@each_module
def test_no_function_is_longer_than_a_screen(module: Module) -> None:
    long = [f.name for f in module.functions() if f.end_lineno and f.end_lineno - f.lineno >= MAX_LINES]
    assert long == []


@pytest.mark.parametrize("package", ROOMS)
def test_a_room_is_typed(package: str) -> None:
    assert (ROOMS[package] / "py.typed").is_file()

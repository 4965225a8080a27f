"""What a module says it has is there, sorted, and described."""

import ast
from collections.abc import Iterator
from importlib import import_module

import pytest
from tests.meta.source import MODULES, Module

import agentcell

WITH_ALL = [module for module in MODULES if "__all__" in module.path.read_text("utf-8")]

each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)


@pytest.mark.parametrize("module", WITH_ALL, ids=lambda module: module.name)
def test_what_is_exported_is_sorted_and_there(module: Module) -> None:
    loaded = import_module(module.name)
    assert loaded.__all__ == sorted(loaded.__all__)
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []


def test_the_public_names_are_what_dir_shows() -> None:
    assert dir(agentcell) == agentcell.__all__


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'agentcell' has no attribute 'nothing'"):
        _ = agentcell.nothing


@each_module
def test_a_module_says_what_it_is(module: Module) -> None:
    assert ast.get_docstring(module.tree)


@each_module
def test_what_is_public_says_what_you_get(module: Module) -> None:
    assert list(silent(module.tree.body)) == []


def silent(body: list[ast.stmt]) -> Iterator[str]:
    """The public classes, functions and methods that have no docstring; a property may speak by its name."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node) and not any(ast.unparse(d) == "property" for d in node.decorator_list):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{name}" for name in silent(node.body))

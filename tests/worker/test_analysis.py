"""What is found in a project's Python files."""

import os
from pathlib import Path
from typing import Any

import pytest

from agentcell_protocol.codec import encode
from agentcell_worker.checks.analysis import MAX_BYTES, MAX_ENTRIES, MAX_FILE_BYTES, analyse
from agentcell_worker.checks.outline import OutlineError, outline

NOTHING: dict[str, list[Any]] = {
    "functions": [],
    "classes": [],
    "methods": [],
    "missing_docstrings": [],
    "test_files": [],
    "unparsable": [],
}

SHOP = '''"""A shop."""
import asyncio

class Basket:
    """What is bought."""

    def __init__(self): ...
    def add(self, item): ...
    async def pay(self):
        """Pay."""
        def inner(): ...

    class Row:
        def total(self): ...

def _round(x): ...

if True:
    def open_shop(): ...
else:
    def open_shop(): ...

try:
    import fast
except ImportError:
    async def run():
        """Run."""
'''


def project(folder: Path, **files: str) -> Path:
    """A project with these files; `__` in a name stands for a slash."""
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_name(path.name + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def at(file: str, *places: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "file": file, "line": line} for name, line in places]


def test_functions_classes_methods_and_missing_docstrings_are_listed_public_ones_first(tmp_path: Path) -> None:
    assert analyse(project(tmp_path, src__shop=SHOP)) == {
        **NOTHING,
        "functions": at("src/shop.py", ("open_shop", 19), ("open_shop", 21), ("run", 26), ("_round", 16)),
        "classes": at("src/shop.py", ("Basket", 4), ("Basket.Row", 13)),
        "methods": at(
            "src/shop.py", ("Basket.add", 8), ("Basket.pay", 9), ("Basket.Row.total", 14), ("Basket.__init__", 7)
        ),
        "missing_docstrings": at(
            "src/shop.py",
            ("Basket.add", 8),
            ("Basket.Row", 13),
            ("Basket.Row.total", 14),
            ("open_shop", 19),
            ("open_shop", 21),
        ),
    }


def test_a_module_without_a_docstring_is_missing_one_unless_it_is_empty(tmp_path: Path) -> None:
    found = analyse(project(tmp_path, full="x = 1\n", empty="", comment="# nothing\n"))
    assert found["missing_docstrings"] == at("full.py", ("full.py", 1))


def test_files_come_in_the_order_of_their_paths_and_the_same_each_time(tmp_path: Path) -> None:
    project(tmp_path, b="def f(): ...", a__z="def f(): ...", a="def f(): ...", a__b="def f(): ...")
    assert [entry["file"] for entry in analyse(tmp_path)["functions"]] == ["a.py", "a/b.py", "a/z.py", "b.py"]
    assert analyse(tmp_path) == analyse(str(tmp_path))


def test_tests_are_named_and_not_taken_apart(tmp_path: Path) -> None:
    names = ("conftest", "pkg__test_a", "pkg__a_test", "tests__helper", "pkg__test__deep__x")
    project(tmp_path, testing="def f(): ...", contest="", **dict.fromkeys(names, "def t(): ..."))
    found = analyse(tmp_path)
    assert found["functions"] == at("testing.py", ("f", 1))
    assert found["test_files"] == [
        "conftest.py",
        "pkg/a_test.py",
        "pkg/test/deep/x.py",
        "pkg/test_a.py",
        "tests/helper.py",
    ]


def test_a_project_whose_path_has_a_folder_of_tests_in_it_is_not_all_tests(tmp_path: Path) -> None:
    assert analyse(project(tmp_path / "tests", a="def f(): ..."))["functions"] == at("a.py", ("f", 1))


def test_an_empty_project_and_none_at_all_have_nothing(tmp_path: Path) -> None:
    assert analyse(tmp_path) == NOTHING
    assert analyse(tmp_path / "missing") == NOTHING


def test_what_tools_keep_in_a_project_is_left_out(tmp_path: Path) -> None:
    project(tmp_path, node_modules__a="x = 1", env__lib__a="x = 1", **{".tox__a": "x = 1"})
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert analyse(tmp_path) == NOTHING


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (b"def f(:\n", "line 1: invalid syntax"),
        (b"x = 1\n  y = 2\n", "line 2: unexpected indent"),
        (b"# coding: klingon\n", "unknown encoding: klingon"),
        (b"x = '\xff'\n", "utf"),
        (b"x = 1\x00\n", "null bytes"),
        (b"-" * 100_000 + b"1", "it is nested too deeply"),
        (b"1" + b"+1" * 100_000, "it is nested too deeply"),
    ],
    ids=["syntax", "indent", "coding", "not utf-8", "null byte", "deep for the parser", "deep for the tree"],
)
def test_what_is_no_python_is_listed_with_the_reason(tmp_path: Path, source: bytes, error: str) -> None:
    (tmp_path / "odd.py").write_bytes(source)
    (tmp_path / "well.py").write_bytes(b"def f(): ...")
    found = analyse(tmp_path)
    assert found["functions"] == at("well.py", ("f", 1))
    assert [entry["file"] for entry in found["unparsable"]] == ["odd.py"]
    assert error in found["unparsable"][0]["error"]


@pytest.mark.parametrize(
    "source",
    [
        "# -*- coding: latin-1 -*-\ndef größe(): ...\n".encode("latin-1"),
        b"\xef\xbb\xbf" + "def größe(): ...\n".encode(),
        "def größe(): ...\r\n".encode(),
    ],
    ids=["declared", "marked", "other line ends"],
)
def test_a_file_is_read_in_the_encoding_it_declares(source: bytes) -> None:
    assert [(each.kind, each.name) for each in outline(source)] == [("module", ""), ("function", "größe")]


def test_doubtful_escapes_and_comparisons_warn_nobody() -> None:
    assert len(outline(b"x = '\\d'\nif x is 1: pass\nassert (x, 'y')\n")) == 1


def test_classes_within_classes_without_end_do_not_exhaust_the_stack() -> None:
    depth = 90
    source = "".join(" " * level + f"class C{level}:\n" for level in range(depth)) + " " * depth + "x = 1\n"
    assert len(outline(source.encode())) == depth + 1


def test_more_branches_than_the_parser_takes_are_no_crash() -> None:
    source = "if a: pass\n" + "elif a: pass\n" * 20_000
    with pytest.raises(OutlineError, match="nested too deeply"):
        outline(source.encode())


def test_links_pipes_and_directories_with_the_name_of_a_module_are_left_out(tmp_path: Path) -> None:
    elsewhere = project(tmp_path / "elsewhere", secret="def f(): ...")
    root = project(tmp_path / "root", a="def f(): ...")
    (root / "loop").symlink_to(root)
    (root / "out").symlink_to(elsewhere)
    (root / "out.py").symlink_to(elsewhere / "secret.py")
    (root / "self.py").symlink_to(root / "self.py")
    (root / "folder.py").mkdir()
    os.mkfifo(root / "pipe.py")
    assert analyse(root) == {
        **NOTHING,
        "functions": at("a.py", ("f", 1)),
        "missing_docstrings": at("a.py", ("a.py", 1), ("f", 1)),
    }


def test_a_long_list_is_cut_and_says_so(tmp_path: Path) -> None:
    source = '"""Many."""\n' + "def _f(): ...\n" * MAX_ENTRIES + "def shown(): ...\n"
    found = analyse(project(tmp_path, many=source))
    assert (found["truncated"], found["totals"]["functions"]) == (True, MAX_ENTRIES + 1)
    assert len(found["functions"]) == MAX_ENTRIES
    assert found["functions"][0] == {"name": "shown", "file": "many.py", "line": MAX_ENTRIES + 2}


def test_a_list_that_just_fits_is_whole(tmp_path: Path) -> None:
    found = analyse(project(tmp_path, many="def f(): ...\n" * (MAX_ENTRIES - 1)))
    assert "truncated" not in found
    assert "totals" not in found


def test_a_file_that_is_too_large_is_named(tmp_path: Path) -> None:
    project(tmp_path, large="#" * (MAX_FILE_BYTES + 1), just="#" * MAX_FILE_BYTES)
    error = f"it is larger than {MAX_FILE_BYTES:,} bytes"
    assert analyse(tmp_path) == {**NOTHING, "unparsable": [{"file": "large.py", "error": error}]}


def test_when_the_files_are_too_many_the_rest_is_left_unread(tmp_path: Path) -> None:
    count = MAX_BYTES // MAX_FILE_BYTES + 2
    comment = "#" * (MAX_FILE_BYTES - 20) + "\ndef f(): ...\n"
    found = analyse(project(tmp_path, **{f"f{number:02}": comment for number in range(count)}))
    assert found["truncated"] is True
    assert len(found["functions"]) == count - 1


def test_the_files_of_a_typescript_project_are_named_and_those_of_a_mixed_one_are_not(tmp_path: Path) -> None:
    for name in ("src/App.tsx", "src/use.ts", "src/plain.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert analyse(tmp_path) == {**NOTHING, "typescript_files": ["src/App.tsx", "src/use.ts"]}
    assert analyse(project(tmp_path, tool="")) == NOTHING


def test_a_name_that_is_not_utf_8_can_be_sent(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text("def f(): ...")
    assert "caf\ufffd.py".encode() in encode(analyse(tmp_path))

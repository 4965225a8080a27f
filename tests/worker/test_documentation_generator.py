"""Whether generated documentation is fit to be read, and what its agent is told."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.worker.flows import Model, install

from agentcell_worker.agents.documentation_generator import run_documentation_generator_session
from agentcell_worker.checks import markdown, reading
from agentcell_worker.checks.documents import validate_generated_docs

VALID: dict[str, Any] = {"valid": True, "issues": []}


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def issues(project: Path, content: str | bytes, name: str = "docs/a.md") -> list[str]:
    """What is wrong with one document."""
    put(project / name, content)
    found = validate_generated_docs([name], project)
    assert found["valid"] == (not found["issues"])
    return [issue.removeprefix(f"{name}: ") for issue in found["issues"]]


def test_no_files_are_valid(tmp_path: Path) -> None:
    assert validate_generated_docs([], tmp_path) == VALID


def test_three_files_are_checked_each(tmp_path: Path) -> None:
    put(tmp_path / "README.md", "# A project\n\nSee [the guide](docs/guide.md).\n")
    put(tmp_path / "docs" / "guide.md", "A guide\n=======\n")
    put(tmp_path / "src" / "a.py", '"""What is new is its docstring."""\n')
    files = ["README.md", "docs/guide.md", "src/a.py"]
    assert validate_generated_docs(files, tmp_path) == VALID
    assert validate_generated_docs([tmp_path / name for name in files], tmp_path) == VALID
    put(tmp_path / "README.md", "")
    (tmp_path / "docs" / "guide.md").unlink()
    assert validate_generated_docs(files, tmp_path) == {
        "valid": False,
        "issues": ["README.md: is empty", "docs/guide.md: there is no such file"],
    }


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("", "is empty"),
        (" \n\t\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"# caf\xe9\n", "is not UTF-8"),
        ("only text\n", "has no heading"),
        ("#no heading\n", "has no heading"),
        ("#\n\n##  ##\n", "has no heading"),
    ],
)
def test_a_document_that_is_none_is_named(tmp_path: Path, content: str | bytes, wrong: str) -> None:
    assert issues(tmp_path, content) == [wrong]


def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "nowhere.md").symlink_to("gone")
    put(tmp_path / "large.md", "# large\n")
    monkeypatch.setattr(reading, "MAX_BYTES", 4)
    assert validate_generated_docs(["folder.md", "pipe.md", "nowhere.md", "large.md", "n" * 300], tmp_path) == {
        "valid": False,
        "issues": [
            "folder.md: cannot be read: it is no regular file",
            "pipe.md: cannot be read: it is no regular file",
            "nowhere.md: there is no such file",
            "large.md: cannot be read: it is larger than 4 bytes",
            f"{'n' * 300}: cannot be read: File name too long",
        ],
    }


@pytest.mark.parametrize("name", ["a.py", "a.rst", "a.txt", "a.json"])
def test_only_markdown_needs_a_heading(tmp_path: Path, name: str) -> None:
    assert issues(tmp_path, "see [it](nowhere.md)\n", name) == []


@pytest.mark.parametrize("name", ["a.md", "A.MD", "a.markdown", "a.mdx"])
def test_markdown_is_told_by_its_name(tmp_path: Path, name: str) -> None:
    assert issues(tmp_path, "text\n", name) == ["has no heading"]


@pytest.mark.parametrize(
    "text",
    [
        "# One",
        "###### Six ######",
        "   ## A little way in",
        "text before\n\n## Two",
        "Drawn\n===",
        "Drawn\n-",
        "**Drawn** with marks\n---",
        "1.0 is out\n====",
        "\ufeff# Behind a mark",
        "---\ntitle: front matter\n---\n\n# One",
        "```sh\n# a comment\n```\n# One",
        "````\n```\n````\n# One",
        "> ```\n> code\n> ```\n\n# One",
        '<h1 align="center">In HTML</h1>',
        "<!-- a\n comment -->\n# One",
        "#\tA tab",
        "# Windows\r\n\r\ntext\r\n",
    ],
)
def test_a_heading_is_seen(text: str) -> None:
    assert markdown.has_heading(text.removeprefix("\ufeff"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "####### Seven",
        "    # code\n",
        "\t# code",
        "text\n\n    # code\n    # code\n",
        "```\n# code\n```",
        "~~~ md\n# code\n```\n# code\n~~~",
        "```\n# never closed",
        "````\n# code\n```\n# code\n",
        "- ```sh\n  # code\n  ```",
        "1. ```\n   # code\n   ```",
        "<!-- # hidden -->",
        "<!--\n# hidden\n-->\ntext",
        "---\ntitle: front matter\n---\ntext",
        "---\ntext\n",
        "text\n\n---\n",
        "- an item\n---",
        "| a table |\n---",
        "> quoted\n---",
        "***\n---\n",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text: str) -> None:
    assert not markdown.has_heading(text)


@pytest.mark.parametrize(
    "link",
    [
        "[a](b.md)",
        "[a](./b.md)",
        "[a](../docs/b.md)",
        "[a](../README.md)",
        "[a](/README.md)",
        "[a](/docs/)",
        "[a](.)",
        "[a](..)",
        "[a](b.md#part)",
        "[a](b.md?plain=1#L2)",
        '[a](b.md "a title")',
        "[a](b.md 'a title')",
        "[a](<with space.md>)",
        "[a](with%20space.md)",
        "[a](with_(brackets).md)",
        r"[a](with\_\(brackets\).md)",
        "[a](b&amp;c.md)",
        "[a](%C3%BC.md)",
        "![a picture](p.png)",
        "[![a picture](p.png)](b.md)",
        "[a][ref]\n\n[ref]: b.md 'title'",
        "[ref]\n\n[ref]: <with space.md>",
        '<img src="p.png" alt="">',
        '<a class="x" href="b.md">b</a>',
        "[a](#part)",
        "[a](https://example.org/nothing.md)",
        "[a](HTTP://example.org)",
        "[a](//example.org/nothing.md)",
        "[a](mailto:a@example.org)",
        "<https://example.org/nothing.md>",
        "[a]: https://example.org",
        "[^1]: a footnote",
        "`[a](nowhere.md)`",
        "``a ` [a](nowhere.md)``",
        "```\n[a](nowhere.md)\n```",
        "\n    [a](nowhere.md)",
        "<!-- [a](nowhere.md) -->",
        r"\[a\](nowhere.md)",
        "values[0] (nowhere)",
    ],
)
def test_a_link_that_leads_somewhere_or_is_none_is_right(tmp_path: Path, link: str) -> None:
    put(tmp_path / "README.md", "# A project")
    for name in ("b.md", "with space.md", "with_(brackets).md", "b&c.md", "ü.md", "p.png"):
        put(tmp_path / "docs" / name, "x")
    assert issues(tmp_path, f"# A heading\n\n{link}\n") == []


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[a](nowhere.md)", "nowhere.md"),
        ("[a](docs/b.md)", "docs/b.md"),
        ("[a](nowhere.md#part)", "nowhere.md#part"),
        ("[a](<no where.md>)", "no where.md"),
        ("![a](nowhere.png)", "nowhere.png"),
        ("[![a](nowhere.png)](b.md)", "nowhere.png"),
        ("[a][r]\n\n[r]: nowhere.md", "nowhere.md"),
        ('<img alt="a" src="nowhere.png"/>', "nowhere.png"),
        ("[a](/nowhere.md)", "/nowhere.md"),
        ("- an item\n\n    [a](nowhere.md)", "nowhere.md"),
        ("a ` b [a](nowhere.md)", "nowhere.md"),
        ("one ` mark\n\n[a](nowhere.md) and another `", "nowhere.md"),
        (r"\`[a](nowhere.md)`", "nowhere.md"),
        ("[a](C:/nowhere.md)", "C:/nowhere.md"),
        (f"[a]({'n' * 300})", "n" * 300),
        ("[a](a%00b.md)", "a%00b.md"),
    ],
)
def test_a_broken_link_is_named(tmp_path: Path, link: str, target: str) -> None:
    put(tmp_path / "docs" / "b.md", "x")
    assert issues(tmp_path, f"# A heading\n\n{link}\n") == [f"links to {target}, which does not exist"]


@pytest.mark.parametrize(
    "link", ["../../outside.md", "../docs/../../outside.md", "%2e%2e/../outside.md", "/../outside.md"]
)
def test_a_link_out_of_the_project_is_named_even_if_something_is_there(tmp_path: Path, link: str) -> None:
    put(tmp_path / "outside.md", "# There")
    assert issues(tmp_path / "project", f"# A heading\n\n[a]({link})\n") == [
        f"links to {link}, which is outside the project"
    ]


@pytest.mark.parametrize("link", ["[a]()", "[a](<>)", "[a](?x)"])
def test_a_link_to_nothing_is_named(tmp_path: Path, link: str) -> None:
    assert issues(tmp_path, f"# A heading\n\n{link}\n") == ["has a link that leads to nothing"]


def test_a_broken_link_is_named_once_and_all_findings_come_in_order(tmp_path: Path) -> None:
    text = "[a](x.md) [b](x.md) ![c](y.png)\n\n[d]: z.md\n"
    assert issues(tmp_path, text) == [
        "has no heading",
        "links to x.md, which does not exist",
        "links to y.png, which does not exist",
        "links to z.md, which does not exist",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "`" * 200_000,
        "` `` " * 50_000,
        "[](" * 100_000,
        "<a " * 100_000,
        "\\](" * 100_000,
        "<!--" * 100_000,
        "[a](" + "(" * 100_000,
        "<img x " * 50_000,
        "[a](" + " " * 100_000 + "x",
        "[a](" + "()" * 100_000 + " x",
        "[a](b" + " " * 100_000 + "x",
        "<a " + " " * 20_000 + "x",
        "<img " + "src " * 50_000,
        "[" * 100_000,
        " " * 100_000 + "x",
        "#" + " " * 100_000 + "#",
        "- " + " " * 100_000 + "x",
        "- " * 100_000,
        ">" * 100_000,
    ],
)
def test_odd_text_is_read_in_a_moment(text: str) -> None:
    assert markdown.links(text) == []
    assert not markdown.has_heading(text)


@pytest.mark.anyio
async def test_what_is_wrong_with_a_document_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Model(works=lambda _: put(tmp_path / "a.md", "no heading\n")))
    with anyio.fail_after(30):
        product = await run_documentation_generator_session(tmp_path, None, {})
    assert product == {
        "generated_files": ["a.md"],
        "success": True,
        "error": None,
        "validation": {"valid": False, "issues": ["a.md: has no heading"]},
    }

"""Whether generated documentation is fit to be read."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from agentcell_worker.checks import markdown
from agentcell_worker.checks.reading import UnusableError, read_text

MARKDOWN = frozenset({".md", ".markdown", ".mdx"})

URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]+:|//)")
"""How a link begins that leads to another host or program."""


def validate_generated_docs(files: Iterable[str | Path], project_dir: str | Path) -> dict[str, Any]:
    """Whether the files, by their paths relative to the project, are there and are documents: {valid, issues}.

    Each has to be UTF-8 and not empty. Markdown needs a heading, and its relative links lead to what exists in the
    project: from the document's own directory, or with a `/` at the beginning from the project. An issue
    is text, `FILE: what is wrong`. No files are valid.
    """
    project = Path(project_dir)
    issues = [f"{file}: {wrong}" for file in files for wrong in _wrong(project, Path(file))]
    return {"valid": not issues, "issues": issues}


def _wrong(project: Path, file: Path) -> Iterator[str]:
    try:
        text = read_text(project / file)
    except UnusableError as wrong:
        yield str(wrong)
    else:
        if file.suffix.lower() in MARKDOWN:
            yield from _wrong_markdown(project, file, text)


def _wrong_markdown(project: Path, file: Path, text: str) -> Iterator[str]:
    if not markdown.has_heading(text):
        yield "has no heading"
    for link in dict.fromkeys(markdown.links(text)):
        if wrong := _wrong_link(project, file, link):
            yield wrong


def _wrong_link(project: Path, file: Path, link: str) -> str | None:
    if link.startswith("#") or URL.match(link):
        return None
    path = unquote(re.split("[?#]", link, maxsplit=1)[0])
    if not path:
        return "has a link that leads to nothing"
    from_project = path.lstrip("/") if path.startswith("/") else os.path.normpath(file.parent / path)
    if Path(from_project).parts[:1] == ("..",):
        return f"links to {link}, which is outside the project"
    return None if _exists(project / from_project) else f"links to {link}, which does not exist"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False  # nothing has a name that long

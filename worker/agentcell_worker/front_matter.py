"""Front matter: what a Markdown file says of itself between two lines of `---` at its start."""

import re
from collections.abc import Collection, Iterator
from typing import Any

import yaml

RULER = "---"

Members = list[tuple[str, Any]]
"""Names and values in their order; a value is a string, or a list or an object of such."""

NO_MEMBER = ("its front matter holds what is no member", "write lines such as name: NAME")
"""Reason and remedy for what is not of the form NAME: VALUE."""

MAX_DEPTH = 20
"""Of a member's value: what people write has three, and a loader that goes deeper takes seconds."""

_MEMBER = re.compile(r"""["']?([A-Za-z_][\w-]*)["']?\s*:(?:\s|$)""")


class FrontMatterError(ValueError):
    """Front matter that cannot be read; `remedy` says what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(reason)


def parted(text: str) -> tuple[str | None, str]:
    """The front matter and what follows it; None without any."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != RULER:
        return None, text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == RULER:
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
    return None, text


def is_begun(text: str) -> bool:
    """Whether the text begins with front matter, be there an end of it or not."""
    return text.partition("\n")[0].rstrip() == RULER


def members_of(text: str, known: Collection[str]) -> Members:
    """The members of front matter; what YAML takes for something else than text is text, too.

    Descriptions in the wild are full of colons and tags: each member is read by itself, and what is no YAML is what
    stands there, unless that might hide a `known` member. Raises FrontMatterError.
    """
    return [member for lines in _parts(text) for member in _read_leniently(lines, known)]


class _Loader(yaml.BaseLoader):
    """Every scalar is a string to it, and it constructs nothing else. Raises YAMLError for what is nested too deep."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise yaml.YAMLError("it is nested too deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _read(text: str) -> Members:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode) or not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise FrontMatterError(*NO_MEMBER)
        # as pairs: a dict would hide that a name is there twice
        return [(key.value, loader.construct_object(value, deep=True)) for key, value in node.value]
    finally:
        loader.dispose()


def _parts(text: str) -> Iterator[list[str]]:
    """The lines of each member: from one that begins at the margin to the next."""
    part: list[str] = []
    for line in text.splitlines():
        if _MEMBER.match(line):
            if part:
                yield part
            part = [line]
        elif part:
            part.append(line)
        elif line.strip() and not line.startswith("#"):
            raise FrontMatterError(*NO_MEMBER)
    if part:
        yield part


def _read_leniently(lines: list[str], known: Collection[str]) -> Members:
    try:
        return _read("\n".join(lines))
    except yaml.YAMLError:
        for line in lines[1:]:
            if (hidden := _MEMBER.match(line.strip())) and hidden[1] in known:
                remedy = f"begin the line at the margin, or put the text that has {hidden[1]}: in it into quotes"
                raise FrontMatterError(f"its {hidden[1]} is not at the margin", remedy) from None
        name, _, first = lines[0].partition(":")
        return [(name.strip().strip("\"'"), "\n".join([first, *lines[1:]]).strip())]

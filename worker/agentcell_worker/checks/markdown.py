"""What there is to check in a Markdown text: whether it has a heading, and where its links lead."""

import html
import re
from collections.abc import Callable, Iterator
from functools import partial

from agentcell_worker.front_matter import parted

MARK = r"(?:[-*+]|\d+[.)])(?:[ \t]|$)"
"""What a list item begins with."""

LIST_ITEM = re.compile(rf"[ \t]*+{MARK}")
FENCE = re.compile(rf"[ \t>]*+(?:{MARK})?[ \t]*+(`{{3,}}(?=[^`]*$)|~{{3,}})")
OPEN_COMMENT = re.compile(r"[ \t]*<!--")
HEADING = re.compile(r" {0,3}#{1,6}[ \t]++(?![ \t#]*$)")
LINE_BELOW = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
NO_PARAGRAPH = re.compile(
    rf"{LIST_ITEM.pattern}| {{4}}|\t| {{0,3}}(?:[>|]|#{{1,6}}(?:[ \t]|$)|(?:=+|-+|\*+|_+)[ \t]*$)"
)
"""The beginning of a line that is no heading when a line is drawn below it."""

HTML_HEADING = re.compile(r"<h[1-6][\s>]", re.IGNORECASE)
TICKS = re.compile(r"(`+)")

TARGET = r"(<[^<>\n]*>|[^\s()<>]*+(?:\([^\s()]*+\)[^\s()]*+)*+)"
TITLE = r"""(?:\s++(?:"[^"]*"|'[^']*'|\([^()]*\)))?"""
INLINE = re.compile(rf"(?<!\\)\]\(\s*+{TARGET}{TITLE}\s*+\)")
DEFINITION = re.compile(r"^ {0,3}\[(?!\^)[^\[\]]+\]:\s*(<[^<>\n]*>|\S+)", re.MULTILINE)
HTML_LINK = re.compile(r"""<(?:a|img)\s(?:[^<>]*?\s)?(?:href|src)\s*+=\s*+["']([^"'<>]*)["']""", re.IGNORECASE)
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def has_heading(text: str) -> bool:
    """Whether the text has a heading: with `#`, with a line drawn below it, or in HTML."""
    above = ""
    for line in _prose(text):
        if HEADING.match(line) or HTML_HEADING.search(line):
            return True
        if above and LINE_BELOW.match(line) and not NO_PARAGRAPH.match(above):
            return True
        above = line
    return False


def links(text: str) -> list[str]:
    """Where links and images lead, in the order of their kinds: in line, by reference, in HTML; code has none."""
    prose = "\n\n".join(map(_without_code_spans, "\n".join(_prose(text)).split("\n\n")))
    found = [target for kind in (INLINE, DEFINITION, HTML_LINK) for target in kind.findall(prose)]
    return [html.unescape(ESCAPE.sub(r"\1", target.removeprefix("<").removesuffix(">"))) for target in found]


def _prose(text: str) -> Iterator[str]:
    """The lines of the text; empty ones in place of comments and blocks of code, front matter left out."""
    until: Callable[[str], bool] | None = None
    above, is_in_list = "", False
    for line in parted(text)[1].splitlines():
        above, is_before = _without_comments(line).rstrip(), bool(above)
        if until is not None:
            until, above = (None if until(line) else until), ""
        elif fence := FENCE.match(line):
            until, above = partial(_closes, fence[1]), ""
        elif OPEN_COMMENT.match(above):
            until, above = _ends_comment, ""
        elif above.startswith(("    ", "\t")) and not is_before and not is_in_list:
            above = ""
        elif above:
            is_in_list = bool(LIST_ITEM.match(above)) or (is_in_list and above[0].isspace())
        yield above


def _closes(fence: str, line: str) -> bool:
    marks = line.strip(" \t>")
    return len(marks) >= len(fence) and set(marks) == {fence[0]}


def _without_comments(line: str) -> str:
    """The line without the comments that end in it."""
    before, opened, rest = line.partition("<!--")
    while opened and "-->" in rest:
        kept, opened, rest = rest.partition("-->")[2].partition("<!--")
        before += kept
    return before + opened + rest


def _ends_comment(line: str) -> bool:
    return "-->" in line


def _without_code_spans(paragraph: str) -> str:
    """The paragraph without what stands between two runs of as many backticks."""
    parts = TICKS.split(paragraph)
    closing: dict[int, int] = {}
    ends: dict[int, int | None] = {}
    for at in range(len(parts) - 2, 0, -2):
        ends[at] = closing.get(len(parts[at]))
        closing[len(parts[at])] = at
    kept, at = [], 0
    while at < len(parts):
        end = ends.get(at) if not parts[at - 1].endswith("\\") else None
        if end is None:
            kept.append(parts[at])
        at = (at if end is None else end) + 1
    return "".join(kept)

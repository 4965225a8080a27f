"""Role prompts: Markdown files whose fields are filled in, all of them, and no others."""

from collections.abc import Mapping
from pathlib import Path
from string import Template

BOM = "\ufeff"


class PromptError(ValueError):
    """A prompt and its fields do not fit together."""


def load(path: Path) -> str:
    """The prompt in a file, without front matter and the blank lines around. Raises OSError, UnicodeDecodeError."""
    return body_of(path.read_text("utf-8").removeprefix(BOM)).strip()


def body_of(text: str) -> str:
    """What follows the front matter, if there is any."""
    return parted(text)[1]


def parted(text: str) -> tuple[str | None, str]:
    """The front matter, which lies between two lines of `---` at the start, and what follows; None without any."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return None, text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
    return None, text


def filled(prompt: str, fields: Mapping[str, object]) -> str:
    """The prompt with each `$name` replaced by the field of that name; `$$` is a dollar sign.

    Raises PromptError for a field that is missing, or that the prompt does not use.
    """
    template = Template(prompt)
    if not template.is_valid():
        raise PromptError("a dollar sign stands alone; write $$")
    used = set(template.get_identifiers())
    if missing := sorted(used - fields.keys()):
        raise PromptError(f"there is no value for {', '.join(missing)}")
    if unused := sorted(fields.keys() - used):
        raise PromptError(f"it does not use {', '.join(unused)}")
    return template.substitute(fields)

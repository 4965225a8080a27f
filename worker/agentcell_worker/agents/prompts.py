"""Role prompts: Markdown files whose fields are filled in, all of them, and no others."""

from collections.abc import Mapping
from pathlib import Path
from string import Template


class PromptError(ValueError):
    """A prompt and its fields do not fit together."""


def load(path: Path) -> str:
    """The prompt in a file, without the blank lines around. Raises OSError, UnicodeDecodeError."""
    return path.read_text("utf-8").strip()


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

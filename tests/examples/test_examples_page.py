"""examples/README.md leads to all there is."""

import re

from tests.examples.clients import EXAMPLES
from tests.meta.pages import page


def test_every_example_is_listed_and_everything_that_is_listed_exists() -> None:
    listed = re.findall(r"\]\((?!https?:)([^)#]+)\)", page("examples/README.md"))
    there = {path for path in EXAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert [path for path in listed if not (EXAMPLES / path).exists()] == []
    assert {EXAMPLES / path for path in listed if not path.startswith("..")} == there - {EXAMPLES / "README.md"}

"""The wire as JSON Schema (2020-12); `python -m agentcell_protocol.schema` writes the committed files."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from agentcell_protocol.events import Event
from agentcell_protocol.request import SessionRequest
from agentcell_protocol.result import SessionResult
from agentcell_protocol.serving import Line, Output

Kind = Literal["request", "event", "result", "serve-input", "serve-output"]
KINDS: tuple[Kind, ...] = ("request", "event", "result", "serve-input", "serve-output")

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES: dict[Kind, TypeAdapter[Any]] = {
    "request": TypeAdapter(SessionRequest),
    "event": TypeAdapter(Annotated[Event, Field(discriminator="type")]),
    "result": TypeAdapter(SessionResult),
    "serve-input": TypeAdapter(Annotated[Line, Field(discriminator="type")]),
    "serve-output": TypeAdapter(Output),
}


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles, which only repeat each member's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the base class names it
        return False


def generate(kind: Kind) -> str:
    """The schema of a kind of message, as the text of its file."""
    schema = {"$schema": DIALECT, **_TYPES[kind].json_schema(mode="validation", schema_generator=_Untitled)}
    return orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def committed(kind: Kind) -> str:
    """The text of the schema file that ships with the package."""
    return files("agentcell_protocol").joinpath(f"schema/v1/{kind}.json").read_text("utf-8")


def main() -> None:
    """Write the schema files beside this module."""
    folder = Path(__file__).parent / "schema" / "v1"
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        (folder / f"{kind}.json").write_text(generate(kind), "utf-8")


if __name__ == "__main__":
    main()

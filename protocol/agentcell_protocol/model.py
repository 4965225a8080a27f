"""The base of every message that is validated."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A message or a part of one: immutable, strict in its types."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", protected_namespaces=())

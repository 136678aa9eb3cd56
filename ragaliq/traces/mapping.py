"""Mapping of the application's spans, from a file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from ragaliq.errors import ConfigurationError


class SpanRule(BaseModel):
    """Rule for spans of a name, or with an attribute: their kind and their attributes.

    Attributes:
        name: Their name; `*` matches anything.
        attribute: An attribute that they have.
        equals: Its value; by default any.
        kind: Their kind; by default by a convention.
        question: Attribute with the question; for a model, its prompt or messages.
        answer: Attribute with the answer.
        documents: Attribute with the documents: texts, or objects with a text, as JSON or not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    attribute: str = ""
    equals: str | None = None
    kind: Literal["", "chain", "agent", "retriever", "reranker", "tool", "model"] = ""
    question: str = ""
    answer: str = ""
    documents: str = ""

    @model_validator(mode="after")
    def _says_which(self) -> SpanRule:
        if not self.name and not self.attribute:
            raise ValueError("it needs a name or an attribute")
        return self

    def covers(self, name: str, attributes: Mapping[str, object]) -> bool:
        """Check whether the rule matches a span."""
        # Of a shell's signs `*` alone is one here: names hold brackets and question marks.
        if self.name and not fnmatchcase(name, re.sub(r"[?[]", r"[\g<0>]", self.name)):
            return False
        held = attributes.get(self.attribute) if self.attribute else ""
        shown = str(held).lower() if isinstance(held, bool) else str(held)  # as files have it
        return held is not None and self.equals in (None, shown)


def rule_for(
    mapping: Sequence[SpanRule], name: str, attributes: Mapping[str, object]
) -> SpanRule | None:
    """First rule that matches a span."""
    return next((rule for rule in mapping if rule.covers(name, attributes)), None)


def read_mapping(path: Path) -> tuple[SpanRule, ...]:
    """Read the rules of a TOML file, one `[[span]]` each, in order.

    Raises:
        ConfigurationError: It is missing, or not as it should be.
    """
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: it is not TOML ({error})") from None
    listed = held.pop("span", None)
    if held or not isinstance(listed, list) or not listed:
        raise ConfigurationError(f"{path}: write each rule as [[span]], and nothing else")
    try:
        return tuple(TypeAdapter(list[SpanRule]).validate_python(listed))
    except ValidationError as error:
        first = error.errors()[0]
        number, *names = first["loc"]
        place = ", ".join([f"span {int(number) + 1}", *map(str, names)])
        raise ConfigurationError(f"{path}, {place}: {first['msg']}") from None

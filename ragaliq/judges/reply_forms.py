"""The form of a reply: as a JSON schema, and in words for a model that has to be told."""

from __future__ import annotations

import copy
import functools
import json
from typing import Any

from pydantic import BaseModel

__all__ = ["form_of", "schema_of"]

_Schema = dict[str, Any]


def schema_of(reply: type[BaseModel]) -> _Schema:
    """The JSON schema of a reply, in the subset that servers agree on.

    There are no references and no titles, and an object has all its properties and no others.
    """
    return copy.deepcopy(_schema(reply))


@functools.cache
def form_of(reply: type[BaseModel]) -> str:
    """A reply as it is to look, on one line: `{"score": <number: 0 to 1.>}`."""
    return _written(_schema(reply))


@functools.cache
def _schema(reply: type[BaseModel]) -> _Schema:
    full = reply.model_json_schema()
    schema: _Schema = _plain(full, full.get("$defs", {}))
    return schema


def _plain(part: Any, definitions: _Schema) -> Any:
    if isinstance(part, list):
        return [_plain(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _plain(definitions[part["$ref"].rpartition("/")[2]], definitions)
    if part.get("type") != "object":
        return {key: _plain(value, definitions) for key, value in part.items() if key != "title"}
    properties = {key: _plain(value, definitions) for key, value in part["properties"].items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _written(part: _Schema) -> str:
    if "enum" in part:
        return " | ".join(map(json.dumps, part["enum"]))
    if part["type"] == "object":
        fields = (f'"{key}": {_written(value)}' for key, value in part["properties"].items())
        return "{" + ", ".join(fields) + "}"
    if part["type"] == "array":
        return f"[{_written(part['items'])}, ...]"
    about = part.get("description", "")
    if part["type"] == "string":
        return json.dumps(f"<{about}>" if about else "<text>", ensure_ascii=False)
    return f"<{part['type']}: {about}>" if about else f"<{part['type']}>"

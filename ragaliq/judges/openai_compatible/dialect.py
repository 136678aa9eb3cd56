"""What a chat-completions server takes, found out once.

The protocol has many servers and no two take the same requests. A judge begins with the most it
would like to ask for and concedes what the server refuses, one thing at a time; what was accepted
is remembered, so that later requests are right at once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["Attempt", "Dialect", "Negotiation"]

_LOG = logging.getLogger(__name__)

ReplyFormat = Literal["json_schema", "json_object_schema", "json_object", "text"]

_FORMATS: tuple[ReplyFormat, ...] = ("json_schema", "json_object_schema", "json_object", "text")
_INVALID_REQUEST = (400, 422)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to word a request.

    Attributes:
        reply_format: How the reply is held to JSON: OpenAI's `json_schema`, llama.cpp's
            `json_object` with a schema, a bare `json_object`, or not at all.
        system_role: Whether the system prompt is a message of its own; some chat templates know
            no such role, and it then opens the user's message.
        temperature: Whether a temperature is sent; reasoning models take none.
        limit: The name of the limit on the reply's tokens; None to send none.
    """

    reply_format: ReplyFormat = "json_schema"
    system_role: bool = True
    temperature: bool = True
    limit: Literal["max_tokens", "max_completion_tokens"] | None = None


def _simpler_format(dialect: Dialect) -> Dialect | None:
    following = _FORMATS.index(dialect.reply_format) + 1
    if following == len(_FORMATS):
        return None
    return replace(dialect, reply_format=_FORMATS[following])


def _no_temperature(dialect: Dialect) -> Dialect | None:
    return replace(dialect, temperature=False) if dialect.temperature else None


def _newer_limit(dialect: Dialect) -> Dialect | None:
    if dialect.limit != "max_tokens":
        return None
    return replace(dialect, limit="max_completion_tokens")


def _no_system_role(dialect: Dialect) -> Dialect | None:
    return replace(dialect, system_role=False) if dialect.system_role else None


_CONCESSIONS: tuple[tuple[re.Pattern[str], Callable[[Dialect], Dialect | None]], ...] = (
    (re.compile(r"response.?format|json.?schema|json.?object|grammar"), _simpler_format),
    (re.compile(r"temperature"), _no_temperature),
    (re.compile(r"max_completion_tokens"), _newer_limit),
    (re.compile(r"system.{0,3}role|role.{0,20}system|roles must alternate"), _no_system_role),
)


class Negotiation:
    """What is known about one server.

    Args:
        dialect: What to begin with.

    Attributes:
        dialect: What to ask in.
        proven: Whether the server has taken it.
        refused: Concessions that did not help.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.proven = False
        self.refused: set[Dialect] = set()

    def begin(self) -> Attempt:
        """One request's way to a dialect the server takes."""
        return Attempt(self)


class Attempt:
    """One request, asked in one dialect after the other. Others may be under way.

    Attributes:
        dialect: What to ask in now.
    """

    def __init__(self, negotiation: Negotiation) -> None:
        self._known = negotiation
        self._began = self.dialect = negotiation.dialect

    def accepted(self) -> None:
        """Remember the dialect: the server took it."""
        if self.dialect != self._known.dialect:
            _LOG.info(
                "the judge's server refused %s and takes %s", self._known.dialect, self.dialect
            )
        self._known.dialect, self._known.proven = self.dialect, True

    def concede(self, status: int, complaint: str) -> bool:
        """Whether there is another dialect to try after a refusal.

        Args:
            status: HTTP status.
            complaint: What the server said. It may quote the request, so that it is only searched
                for words and never kept.
        """
        if self.dialect != self._began:
            self._known.refused.add(self.dialect)
        if self._began != self._known.dialect != self.dialect:
            # Another request has found out in the meantime.
            self._began = self.dialect = self._known.dialect
            return True
        other = named = _named_concession(self.dialect, complaint.lower())
        if other is None and status in _INVALID_REQUEST and not self._known.proven:
            # Some say no more than "bad request".
            other = _simpler_format(self.dialect)
        # What did not help once is not tried again, unless the server asks for it by name and has
        # not taken anything yet: the first time, something else may have been wrong as well.
        if other in self._known.refused and (self._known.proven or named is None):
            return False
        self.dialect = other or self.dialect
        return other is not None


def _named_concession(dialect: Dialect, complaint: str) -> Dialect | None:
    # Whatever the status: llama-cpp-python answers 500 to a form of reply it does not know.
    for pattern, concession in _CONCESSIONS:
        if pattern.search(complaint) and (other := concession(dialect)) is not None:
            return other
    return None

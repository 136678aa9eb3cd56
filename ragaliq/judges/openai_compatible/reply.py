"""What a chat completion says and costs.

The SDK builds its types without checking them, and servers leave out what they like: every value
is looked at before it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragaliq.core.results import JudgeUsage

__all__ = ["Completion", "read_completion"]


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply.

    Attributes:
        text: What the model said.
        refused: Whether it declined, by a refusal in the place of a text.
        finish_reason: Why it ended; empty where the server does not say.
        usage: Its tokens, without a price.
    """

    text: str
    refused: bool
    finish_reason: str
    usage: JudgeUsage


def read_completion(body: object) -> Completion | None:
    """The completion in a server's reply; None where there is none."""
    choices = getattr(body, "choices", None)
    if not isinstance(choices, list) or not choices:
        return None
    message = getattr(choices[0], "message", None)
    if message is None:
        return None
    reason = getattr(choices[0], "finish_reason", None)
    return Completion(
        text=_text(getattr(message, "content", None)),
        refused=bool(_text(getattr(message, "refusal", None)).strip()),
        finish_reason=reason if isinstance(reason, str) else "",
        usage=_usage(getattr(body, "usage", None)),
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    # Some servers give parts, as in a request.
    parts = content if isinstance(content, list) else []
    return "".join(_text(part.get("text")) for part in parts if isinstance(part, dict))


def _usage(spent: Any) -> JudgeUsage:
    prompt = _count(getattr(spent, "prompt_tokens", None))
    reply = _count(getattr(spent, "completion_tokens", None))
    if not prompt and not reply:
        total = _count(getattr(spent, "total_tokens", None))
        return JudgeUsage(unsplit_tokens=total, requests=1, cost_usd=None)
    details = getattr(spent, "prompt_tokens_details", None)
    # There, cached tokens are a part of the prompt's; in `JudgeUsage` each is in one figure.
    read = min(prompt, _count(getattr(details, "cached_tokens", None)))
    written = min(prompt - read, _count(getattr(details, "cache_write_tokens", None)))
    return JudgeUsage(
        input_tokens=prompt - read - written,
        output_tokens=reply,
        cache_read_tokens=read,
        cache_write_tokens=written,
        requests=1,
        cost_usd=None,
    )


def _count(tokens: object) -> int:
    return tokens if isinstance(tokens, int) and tokens > 0 else 0

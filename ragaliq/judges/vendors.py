"""Tables of vendors' field names in replies: tokens, stop reasons, errors.

Servers use a handful of protocols with different names. Each table has the names of all of them, so
that a reply means the same from our clients, through a gateway, or through a framework's client.
Missing figures are unknown, never zero.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Literal, NamedTuple

from ragaliq.core.results import JudgeUsage

# --- Tokens -----------------------------------------------------------------------------------

# OpenAI and most servers; Anthropic, OpenAI's Responses and LangChain; Gemini; Bedrock; Ollama.
_INPUT = (
    "prompt_tokens input_tokens prompt_token_count promptTokenCount inputTokens prompt_eval_count"
).split()
_OUTPUT = (
    "completion_tokens output_tokens candidates_token_count candidatesTokenCount outputTokens "
    "eval_count"
).split()
_TOTAL = "total_tokens total_token_count totalTokenCount totalTokens".split()
# A part of the input above.
_CACHED = (
    "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens "
    "input_token_details.cache_read prompt_cache_hit_tokens cached_content_token_count "
    "cachedContentTokenCount"
).split()
_WRITTEN = (
    "prompt_tokens_details.cache_write_tokens input_tokens_details.cache_write_tokens "
    "input_token_details.cache_creation "
    "input_token_details.ephemeral_5m_input_tokens input_token_details.ephemeral_1h_input_tokens"
).split()
# Apart from the input above: Anthropic and Bedrock. Gateways that translate Anthropic's figures
# into OpenAI's give these too, but add them to `prompt_tokens` as OpenAI does.
_CACHED_APART = "cache_read_input_tokens cacheReadInputTokens cacheReadInputTokenCount".split()
_WRITTEN_APART = (
    "cache_creation_input_tokens cacheWriteInputTokens cacheWriteInputTokenCount"
).split()
_COUNTS_APART = ("input_tokens", "inputTokens")
_TICK = 1e-10  # dollars: the unit in which xAI says what a request cost
REPORTING = ("openrouter", "x-ai")
"""Vendors whose replies say what they cost, by their names in price lists."""

_USAGES = "usage token_usage usage_metadata usageMetadata".split()

UNKNOWN_USAGE = JudgeUsage(requests=1, cost_usd=None)
"""One request that says nothing of its tokens."""


def usage_of(reply: object) -> JudgeUsage:
    """Usage of one request, from its usage or from the whole reply.

    The cost is the one that the vendor reports; None if it reports none.
    """
    spent = next((found for name in _USAGES if (found := _at(reply, name)) is not None), reply)
    names = [name for name in _INPUT if isinstance(_at(spent, name), (int, float))]
    named = max(names, key=lambda name: _count(spent, name), default="")
    total = _sum(spent, _TOTAL)
    read = _sum(spent, _CACHED[:3]) or _sum(spent, _CACHED[3:])
    written = _sum(spent, _WRITTEN)
    input_tokens = _count(spent, named)
    output_tokens = _sum(spent, _OUTPUT)
    if named in _COUNTS_APART and (apart := _sum(spent, _CACHED_APART + _WRITTEN_APART)):
        read, written = _sum(spent, _CACHED_APART), _sum(spent, _WRITTEN_APART)
        input_tokens += apart
    if not input_tokens and not output_tokens:
        return UNKNOWN_USAGE.model_copy(update={"unsplit_tokens": total, "cost_usd": _cost(spent)})
    # Some leave the thoughts out of the output and count them in the total only (Gemini, xAI).
    output_tokens = max(output_tokens, total - input_tokens)
    read = min(read, input_tokens)
    written = min(written, input_tokens - read)
    return JudgeUsage(
        input_tokens=input_tokens - read - written,
        output_tokens=output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=written,
        requests=1,
        cost_usd=_cost(spent),
    )


def _cost(spent: object) -> float | None:
    """Cost in US dollars as reported by xAI and OpenRouter."""
    ticks, cost = _at(spent, "cost_in_usd_ticks"), _at(spent, "cost")
    if isinstance(ticks, int):
        return ticks * _TICK
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or cost < 0:
        return None
    # With a key of the user's own at the model's vendor, OpenRouter's share comes on top.
    behind = _at(spent, "cost_details.upstream_inference_cost") if _at(spent, "is_byok") else None
    return cost + (behind if isinstance(behind, (int, float)) else 0.0)


def _at(value: object, path: str) -> Any:
    """A field of a mapping or object, by its dotted name; None where there is none."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value


def _count(value: object, path: str) -> int:
    """Number of tokens; 0 for anything else that a server sends."""
    found = _at(value, path) if path else 0
    return int(found) if isinstance(found, (int, float)) and found > 0 else 0


def _sum(value: object, paths: list[str]) -> int:
    return sum(_count(value, path) for path in paths)


# --- Reasons to stop --------------------------------------------------------------------------

Stop = Literal["refused", "filtered", "cut_off", "failed", ""]

_STOPS: dict[str, Stop] = {
    **dict.fromkeys(["refusal"], "refused"),
    **dict.fromkeys(
        "content_filter content_filtered safety recitation blocklist prohibited_content spii "
        "language image_safety guardrail_intervened".split(),
        "filtered",
    ),
    **dict.fromkeys(
        "length max_tokens model_length max_output_tokens model_context_window_exceeded "
        "context_length_exceeded".split(),
        "cut_off",
    ),
    **dict.fromkeys(["error", "malformed_function_call", "insufficient_system_resource"], "failed"),
}
_GUARDRAIL = "amazon-bedrock-guardrailAction"
_NAMES = re.compile(r"\w+")
_REASONS = "finish_reason stop_reason finishReason stopReason done_reason".split()


def stop_of(reply: object) -> Stop:
    """Reason why a reply is incomplete; empty if the model finished it."""
    if _at(reply, _GUARDRAIL) == "INTERVENED":
        return "filtered"
    for part in (reply, first_of(reply, "choices"), first_of(reply, "candidates")):
        message = _at(part, "message")
        if any(_filled(_at(each, "refusal")) for each in (part, message)):
            return "refused"
        for name in _REASONS:
            reason = _at(part, name)
            # An enumeration of a client's own has the name as its value or after a dot; Gemini
            # writes two: "content_filter: SAFETY".
            for word in _NAMES.findall(str(getattr(reason, "value", reason)).lower()):
                if found := _STOPS.get(word):
                    return found
    return ""


def first_of(reply: object, name: str) -> Any:
    """First of a reply's choices; None if there are none."""
    found = _at(reply, name)
    return found[0] if isinstance(found, list) and found else None


def _filled(value: object) -> bool:
    return bool(value.strip()) if isinstance(value, str) else False


# --- Errors -----------------------------------------------------------------------------------


class ServerError(NamedTuple):
    """Error in the body of a reply; `message` may quote the request."""

    status: int
    code: str = ""
    kind: str = ""
    message: str = ""
    fields: Mapping[str, Any] = {}

    @property
    def lacks_credit(self) -> bool:
        """True if the account lacks credit."""
        return self.status == 402 or (self.status < 500 and self._says(_NO_CREDIT))

    @property
    def is_filtered(self) -> bool:
        """True if a content filter or moderation refused the request."""
        flagged = _at(self.fields, "metadata.flagged_input") or _at(self.fields, "metadata.reasons")
        return bool(flagged) or (self.status < 500 and self._says(_FILTERED))

    @property
    def is_too_long(self) -> bool:
        """True if the request exceeds the model's window."""
        return self._says(_TOO_LONG)

    def _says(self, pattern: re.Pattern[str]) -> bool:
        names = f"{self.code} {self.kind} {_at(self.fields, 'details.error_code')}"
        said = f"{names} {self.message[:_LONGEST_COMPLAINT]}"
        return pattern.search(said.lower()) is not None


_LONGEST_COMPLAINT = 400
_NO_CREDIT = re.compile(
    # Names of errors
    r"insufficient_(?:quota|credits|balance|funds)|billing_|spend_limit|budget_exceeded|"
    r"exceeded_current_quota|arrearage|"
    # Sentences
    r"insufficient (?:credits|balance|funds)|credit balance is too low|credits are depleted|"
    r"used all available credits|doesn't have any credits|spending limit|"
    r"budget has been exceeded|account is in good standing"
)
_FILTERED = re.compile(
    r"content_filter|content_?policy_?violation|invalid_prompt|moderation_blocked|"
    r"data_inspection_failed|violates (?:our |the )?usage (?:guidelines|policies)"
)
_TOO_LONG = re.compile(
    r"context.?(?:length|size|window)|string_above_max_length|prompt is too long"
)
# Of an error in a reply with status 200.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_BAD_GATEWAY = 502
_OK = 200


def error_in(body: object, status: int = _OK) -> ServerError | None:
    """Error in a reply's body; None if there is none.

    Args:
        body: The body, parsed, or what an SDK kept of it.
        status: The reply's own status; where it says that all is well, the body's counts.
    """
    body = body[0] if isinstance(body, list) and body else body  # as Gemini's compatible endpoint
    error = _at(body, "error")
    if error is None and status == _OK:
        error = _at(first_of(body, "choices"), "error")
    if error is None and status != _OK:
        error = body
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, Mapping):
        return None if status == _OK else ServerError(status)
    code, kind, message = _word(error.get("code")), _word(error.get("type")), _complaint(error)
    if status == _OK:
        named = int(code) if re.fullmatch(r"[45]\d\d", code) else None
        status = named or _STATUSES.get(code) or _STATUSES.get(kind) or _BAD_GATEWAY
    return ServerError(status, code, kind, message, error)


def _word(value: object) -> str:
    return str(value) if isinstance(value, (str, int)) else ""


def _complaint(error: Mapping[str, Any]) -> str:
    """Message of an error; for a list of wrong fields (FastAPI, Mistral) names and problems.

    Without the values in such a list, which contain the request's texts.
    """
    said = error.get("message") or error.get("detail")
    said = said.get("detail") if isinstance(said, Mapping) else said
    if not isinstance(said, list):
        return _word(said)
    parts = [part for part in said if isinstance(part, Mapping)]
    return "; ".join(f"{part.get('loc')} {_word(part.get('msg'))}" for part in parts)


# Bytes of a reply; packed ones grow a thousandfold.
_MOST_BYTES, _MOST_PACKED = 16 * 2**20, 2**18


async def _beginning(
    response: Any, whole: AsyncGenerator[bytes], most: int
) -> AsyncIterator[bytes]:
    """Cut off a reply that is too long; what is left cannot be read as a reply."""
    async with aclosing(whole):
        async for part in whole:
            most -= len(part)
            if most < 0:
                await response.aclose()
                return
            yield part


async def name_errors(response: Any) -> None:
    """Bound a server's reply, and normalise its error before its SDK decides on a retry.

    A hook of the HTTP client. An error in a reply with status 200, as OpenRouter sends, becomes an
    error with the status that it names. A request that is too long, or lacks credit, is not
    retried.
    """
    most = _MOST_PACKED if "content-encoding" in response.headers else _MOST_BYTES
    response.aiter_raw = partial(_beginning, response, response.aiter_raw(), most)
    status, content = response.status_code, b""
    if status in (_OK, 429) or status >= 500:
        content = await response.aread()
    if b'"error"' not in content:
        return
    try:
        error = error_in(json.loads(content), status)
    except (ValueError, RecursionError):
        return
    if error is not None:
        response.status_code = error.status
        if error.lacks_credit or error.is_too_long:
            response.headers["x-should-retry"] = "false"

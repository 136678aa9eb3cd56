"""What becomes of one request in a batch, as the store keeps it and as an error of ours."""

from __future__ import annotations

import json
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ragaliq.errors import JudgeAPIError, JudgeError, JudgeResponseError, JudgeTimeoutError
from ragaliq.judges.api_errors import status_failed

__all__ = [
    "SUCCEEDED",
    "Outcome",
    "Result",
    "failure_of",
    "read_outcome",
    "read_result",
    "refused_batch",
    "withheld",
]

Outcome: TypeAlias = dict[str, Any]
"""`type`, and what goes with it: `message` where it succeeded, else how it failed. Nothing else a
server wrote is kept."""

SUCCEEDED = "succeeded"

_MALFORMED: Final[Outcome] = {"type": "malformed"}
# What goes with an outcome besides its type.
_NEEDED: dict[str, tuple[str, type]] = {
    SUCCEEDED: ("message", dict),
    "errored": ("error", str),
    "refused": ("status", int),
}

# What the API calls failures that may pass; a request is not billed for them.
_PASSING = {"api_error", "overloaded_error", "rate_limit_error", "timeout_error"}
_KNOWN = _PASSING | {
    "authentication_error",
    "billing_error",
    "invalid_request_error",
    "not_found_error",
    "permission_error",
}
_SERVICE = "the Message Batches API"
_ADVICE = {
    400: "check the model's name and max_tokens=",
    401: "the API key is not valid; check ANTHROPIC_API_KEY or api_key=",
    402: "check the account's billing",
    403: "the API key may not use batches or this model",
    404: "there are no batches at this address; check base_url=",
    413: "the request is too large; use fewer or shorter chunks",
}


class Result(NamedTuple):
    """One line of a batch's results.

    Attributes:
        request_id: Which request it is about.
        outcome: What became of it.
        may_pass: Whether the same request may succeed when it is sent again.
    """

    request_id: str
    outcome: Outcome
    may_pass: bool = False


def read_result(line: bytes) -> Result | None:
    """One line of a results file; None where it does not even name its request."""
    try:
        row = json.loads(line)
        request_id, result = row["custom_id"], row["result"]
        kind = result["type"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return _unread(line)
    if not _may_be_ours(request_id):
        return None
    if kind == SUCCEEDED and isinstance(result.get("message"), dict):
        return Result(request_id, {"type": SUCCEEDED, "message": result["message"]})
    if kind == "errored":
        error = _error_type(result)
        return Result(request_id, {"type": "errored", "error": error}, error in _PASSING)
    if kind in ("expired", "canceled"):
        return Result(request_id, {"type": kind})
    return Result(request_id, _MALFORMED)


def _unread(line: bytes) -> Result | None:
    try:
        request_id = json.loads(line)["custom_id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return Result(request_id, _MALFORMED) if _may_be_ours(request_id) else None


def _may_be_ours(request_id: object) -> bool:
    # SQLite takes no text with half a surrogate pair in it, which JSON may hold.
    return isinstance(request_id, str) and request_id.isascii()


def _error_type(result: dict[str, Any]) -> str:
    # Either the error itself, or the API's usual body with the error in it.
    error = result.get("error")
    inner = error.get("error") if isinstance(error, dict) else None
    for part in (inner, error):
        named = part.get("type") if isinstance(part, dict) else None
        if isinstance(named, str) and named in _KNOWN:
            return named
    return "unknown_error"


def read_outcome(text: str) -> Outcome:
    """An outcome from the store; one that is damaged, or of another version, is a malformed one."""
    try:
        outcome = json.loads(text)
        kind = outcome["type"]
        needed = _NEEDED.get(kind)
    except (ValueError, TypeError, KeyError, RecursionError):
        return _MALFORMED
    if needed is not None:
        name, of_type = needed
        return outcome if isinstance(outcome.get(name), of_type) else _MALFORMED
    return outcome if kind in _WORDS else _MALFORMED


def refused_batch(status: int) -> Outcome:
    """For the requests of a batch which the API did not take; HTTP status."""
    return {"type": "refused", "status": status}


def withheld(kind: Literal["unknown_batch", "missing"]) -> Outcome:
    """For requests whose results are not to be had."""
    return {"type": kind}


def failure_of(outcome: Outcome, model: str) -> JudgeError:
    """The error for a request that brought no reply."""
    kind = outcome["type"]
    if kind == "refused":
        return status_failed(
            _SERVICE, model, status=outcome["status"], request_id=None, advice=_ADVICE
        )
    if kind == "errored":
        error = outcome["error"]
        again = "it failed several times" if error in _PASSING else "check the request's settings"
        return JudgeAPIError(
            f"{_SERVICE} could not process a request for {model}: {error}; {again}"
        )
    return _WORDS[kind][0](_WORDS[kind][1])


_WORDS: dict[str, tuple[type[JudgeError], str]] = {
    "expired": (
        JudgeTimeoutError,
        "the batch expired before the request was processed; ask again, it was not billed",
    ),
    "canceled": (JudgeAPIError, "the request was canceled before it was processed; not billed"),
    "malformed": (JudgeResponseError, "the batch's result for the request is malformed"),
    "missing": (JudgeResponseError, "the batch's results hold none for the request"),
    "unknown_batch": (
        JudgeAPIError,
        "the API does not know the batch any more; was it deleted, or is this another workspace?",
    ),
}

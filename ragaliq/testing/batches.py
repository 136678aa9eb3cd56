"""Message Batches as the loopback server keeps them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ragaliq.testing.replies import Json, Reply

__all__ = ["Batch", "batch_fault_of", "canceled", "errored", "expired"]

_MOST_REQUESTS = 100_000
_LONGEST_ID = 64


@dataclass
class Batch:
    """One batch.

    Attributes:
        batch_id: Such as `msgbatch_00000001`.
        requests: The requests' ids and bodies, in order.
        created_at: When it was made.
        results: By the requests' ids, as far as they have been processed.
        is_canceled: Whether it is to end early.
        has_ended: Whether its results can be had.
    """

    batch_id: str
    requests: dict[str, Json]
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    results: dict[str, Json] = field(default_factory=dict)
    is_canceled: bool = False
    has_ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def process(self, answer: Callable[[str, Json], Json]) -> None:
        """Get a result for each request that has none, and end."""
        with self.lock:
            for name, params in self.requests.items():
                if name not in self.results:
                    self.results[name] = canceled() if self.is_canceled else answer(name, params)
            self.has_ended = True

    def body(self, url: str) -> Json:
        """How the API shows it."""
        kinds = [result["type"] for result in self.results.values()] if self.has_ended else []
        counts = {
            kind: kinds.count(kind) for kind in ("succeeded", "errored", "canceled", "expired")
        }
        status = "canceling" if self.is_canceled else "in_progress"
        now = datetime.now(UTC).isoformat()
        return {
            "id": self.batch_id,
            "type": "message_batch",
            "processing_status": "ended" if self.has_ended else status,
            "request_counts": {"processing": len(self.requests) - len(kinds), **counts},
            "created_at": self.created_at.isoformat(),
            "expires_at": (self.created_at + timedelta(days=1)).isoformat(),
            "ended_at": now if self.has_ended else None,
            "cancel_initiated_at": now if self.is_canceled else None,
            "archived_at": None,
            "results_url": f"{url}/{self.batch_id}/results" if self.has_ended else None,
        }

    def lines(self) -> bytes:
        """The results, the last request's first: their order means nothing."""
        rows = (
            {"custom_id": name, "result": result}
            for name, result in reversed(list(self.results.items()))
        )
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def batch_fault_of(body: Json) -> str | None:
    """Why the API would refuse to make such a batch, or None."""
    requests = body.get("requests")
    if not isinstance(requests, list) or not requests:
        return "requests: Field required"
    if len(requests) > _MOST_REQUESTS:
        return f"requests: at most {_MOST_REQUESTS}"
    names = [item.get("custom_id") for item in requests]
    if not all(isinstance(name, str) and 0 < len(name) <= _LONGEST_ID for name in names):
        return f"requests: custom_id must have 1 to {_LONGEST_ID} characters"
    if not all(name.replace("-", "").replace("_", "").isalnum() for name in names):
        return "requests: custom_id may hold letters, digits, - and _"
    if len(set(names)) < len(names):
        return "requests: custom_id must be unique"
    return None


def errored(kind: str = "invalid_request_error") -> Json:
    """The result of a request the API could not process; `api_error` is one that may pass."""
    error = {"type": kind, "message": "a planned failure"}
    return {"type": "errored", "error": {"type": "error", "error": error, "request_id": None}}


def expired() -> Json:
    """The result of a request that was not processed within 24 hours."""
    return {"type": "expired"}


def canceled() -> Json:
    """The result of a request that was canceled before it was processed."""
    return {"type": "canceled"}


def result_of(reply: Reply) -> Json:
    """What a reply of the Messages API is within a batch."""
    if reply.status == 200 and isinstance(reply.body, dict):
        return {"type": "succeeded", "message": reply.body}
    kind = reply.body["error"]["type"] if isinstance(reply.body, dict) else "api_error"
    return errored(kind)

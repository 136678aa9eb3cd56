"""A Messages API with its batch endpoints on the loopback interface."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from loopback.messages import MessagesRequest, MessagesServer, has_key
from loopback.protocol import Reply

_PATH = "/v1/messages/batches"
_MOST_REQUESTS = 100_000
_LONGEST_ID = 64


def errored(kind="invalid_request_error"):
    """The result of a request the API could not process; `api_error` is one that may pass."""
    error = {"type": kind, "message": "a planned failure"}
    return {"type": "errored", "error": {"type": "error", "error": error, "request_id": None}}


def expired():
    """The result of a request that was not processed within 24 hours."""
    return {"type": "expired"}


@dataclass
class Batch:
    """One batch: bodies by the requests' ids; results too, none until it has ended."""

    batch_id: str
    requests: dict[str, Any]
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    results: dict[str, Any] = field(default_factory=dict)

    def body(self, url):
        """How the API shows it."""
        kinds = [result["type"] for result in self.results.values()]
        counts = {
            kind: kinds.count(kind) for kind in ("succeeded", "errored", "canceled", "expired")
        }
        return {
            "id": self.batch_id,
            "type": "message_batch",
            "processing_status": "ended" if kinds else "in_progress",
            "request_counts": {"processing": len(self.requests) - len(kinds), **counts},
            "created_at": self.created_at.isoformat(),
            "expires_at": (self.created_at + timedelta(days=1)).isoformat(),
            "ended_at": datetime.now(UTC).isoformat() if kinds else None,
            "cancel_initiated_at": None,
            "archived_at": None,
            "results_url": f"{url}/{self.batch_id}/results" if kinds else None,
        }


class BatchesServer(MessagesServer):
    """`MessagesServer` with Message Batches; a context manager.

        with BatchesServer() as server:
            client = anthropic.AsyncAnthropic(api_key="test", base_url=server.url)

    A batch ends when it is next looked at, unless `holds` is set. A request's result is what the
    Messages API would answer to it: with `respond`, an error status becomes an `errored` result.

    Args:
        result: Gives a request's whole result by its body, such as
            `loopback.batches.expired()`; None for the usual one.

    Attributes:
        holds: Whether batches go on without an end.
        refusals: HTTP statuses, or replies, that the next batches are refused with.
        lookups: Likewise for the next looks at one batch or its results; None for none.
        batches: Every batch, oldest first.
        calls: Every request about batches so far, repeated ones included.
        paid: The ids of all requests that were processed and would be billed, in order.
    """

    def __init__(self, judge=None, *, respond=None, result=None):
        super().__init__(judge, respond=respond)
        self._result = result or (lambda _: None)
        self._ending = threading.Lock()
        self.holds = False
        self.refusals, self.lookups = [], []
        self.batches = []
        self.calls = []
        self.paid = []

    def _post(self, path, headers, body):
        if path != _PATH:
            return super()._post(path, headers, body)
        self.calls.append("create")
        fault = _fault_of(body)
        if not has_key(headers):
            return self._error(401, "invalid x-api-key")
        if fault:
            return self._error(400, fault)
        if self.refusals:
            return self._planned(self.refusals.pop(0))
        requests = {item["custom_id"]: item["params"] for item in body["requests"]}
        with self._lock:
            batch = Batch(f"msgbatch_{len(self.batches) + 1:08d}", requests)
            self.batches.append(batch)
        return Reply(body=batch.body(self.url + _PATH))

    def _get(self, path, headers):
        parts = urlsplit(path)
        batch_id, _, rest = parts.path.removeprefix(_PATH).removeprefix("/").partition("/")
        if not parts.path.startswith(_PATH) or rest not in ("", "results"):
            return self._error(404, "Not found")
        self.calls.append("list" if not batch_id else "results" if rest else "retrieve")
        if not has_key(headers):
            return self._error(401, "invalid x-api-key")
        if not self.holds:
            self._end_all()
        if not batch_id:
            return Reply(body=self._page(parse_qs(parts.query)))
        return self._one(batch_id, rest)

    def _one(self, batch_id, rest):
        batch = next((each for each in self.batches if each.batch_id == batch_id), None)
        if batch is None or (rest and not batch.results):
            return self._error(404, "Not found")
        if self.lookups and (planned := self.lookups.pop(0)):
            return self._planned(planned)
        if not rest:
            return Reply(body=batch.body(self.url + _PATH))
        # The last request's first: their order means nothing.
        rows = [
            json.dumps({"custom_id": name, "result": result}) + "\n"
            for name, result in reversed(batch.results.items())
        ]
        return Reply(body="".join(rows).encode(), headers={"content-type": "application/x-jsonl"})

    def _planned(self, refusal):
        planned = isinstance(refusal, Reply)
        return refusal if planned else self._error(refusal, "a planned failure")

    def _page(self, asked):
        newest_first = self.batches[::-1]
        names = [batch.batch_id for batch in newest_first]
        after = asked.get("after_id", [""])[0]
        start = names.index(after) + 1 if after in names else 0
        end = start + int(asked.get("limit", ["20"])[0])
        page = [batch.body(self.url + _PATH) for batch in newest_first[start:end]]
        return {
            "data": page,
            "has_more": end < len(names),
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
        }

    def _end_all(self):
        with self._ending:
            for batch in self.batches:
                if not batch.results:
                    batch.results = {
                        name: self._processed(name, params)
                        for name, params in batch.requests.items()
                    }

    def _processed(self, name, params):
        # The key was looked at when the batch was made.
        request = MessagesRequest("/v1/messages", {"x-api-key": "of the batch"}, params)
        result = self._result(request)
        if result is None:
            reply = self._answer_to(request)
            if reply.status == 200 and isinstance(reply.body, dict):
                result = {"type": "succeeded", "message": reply.body}
            elif isinstance(reply.body, dict):
                result = errored(reply.body["error"]["type"])
            else:
                result = errored("api_error")
        if result["type"] == "succeeded":
            self.paid.append(name)
        return result


def _fault_of(body):
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

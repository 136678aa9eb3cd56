"""A Messages API with its batch endpoints on the loopback interface."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

from ragaliq.judges.base import LLMJudge
from ragaliq.testing.batches import Batch, batch_fault_of, result_of
from ragaliq.testing.messages import MessagesRequest, MessagesServer
from ragaliq.testing.replies import Json, Reply

__all__ = ["BatchesServer", "Endpoint"]

Endpoint: TypeAlias = Literal["create", "retrieve", "list", "results", "cancel"]

_PATH = "/v1/messages/batches"


class BatchesServer(MessagesServer):
    """`MessagesServer` with Message Batches; a context manager.

        with BatchesServer() as server:
            client = anthropic.AsyncAnthropic(api_key="test", base_url=server.url)

    A batch ends when it is first asked after, unless `holds` is set: then it ends with `end()`.
    A request's result is what the Messages API would answer to it: with `respond`, an error status
    becomes an `errored` result.

    Args:
        judge: Who decides; when None, a `ScriptedJudge` that goes by wording.
        respond: Answers in the judge's place; see `MessagesServer`.
        result: Gives a request's whole result by its body, such as
            `ragaliq.testing.batches.expired()`; None for the usual one.

    Attributes:
        holds: Whether batches wait for `end()`.
        paid: The ids of all requests that were processed and would be billed, in order.
    """

    def __init__(
        self,
        judge: LLMJudge | None = None,
        *,
        respond: Callable[[MessagesRequest], Reply] | None = None,
        result: Callable[[MessagesRequest], Json | None] | None = None,
    ) -> None:
        super().__init__(judge, respond=respond)
        self._result = result or (lambda _: None)
        self._getter = self._get
        self._batches: dict[str, Batch] = {}
        self._numbers = itertools.count(1)
        self._planned: dict[str, deque[Reply]] = defaultdict(deque)
        self._calls: list[Endpoint] = []
        self.holds = False
        self.paid: list[str] = []

    @property
    def batches(self) -> list[Batch]:
        """Every batch, oldest first."""
        with self._lock:
            return list(self._batches.values())

    @property
    def calls(self) -> list[Endpoint]:
        """Every request about batches so far, repeated ones included."""
        with self._lock:
            return list(self._calls)

    def plan(self, endpoint: Endpoint, *replies: Reply) -> None:
        """Have the next requests to an endpoint go wrong, one each.

        A reply with an error status comes in the place of the work. One without, such as
        `faults.cut_off()` or `faults.slow(1.0)`, says how the answer to the work done arrives.
        """
        with self._lock:
            self._planned[endpoint].extend(replies)

    def end(self) -> None:
        """End every batch there is; also where an event loop runs."""
        ending = threading.Thread(target=self._end)
        ending.start()
        ending.join()

    def _end(self) -> None:
        for batch in self.batches:
            batch.process(self._answered)

    def forget(self, batch_id: str) -> None:
        """Delete a batch."""
        with self._lock:
            del self._batches[batch_id]

    # --- requests -----------------------------------------------------------------------------

    def _handle(self, path: str, headers: Mapping[str, str], body: Json | None) -> Reply:
        if path == _PATH:
            return self._carried_out("create", headers, lambda: self._create(body or {}))
        if path.startswith(_PATH) and path.endswith("/cancel"):
            batch_id = path.split("/")[-2]
            return self._carried_out("cancel", headers, lambda: self._cancel(batch_id))
        return super()._handle(path, headers, body)

    def _get(self, path: str, headers: Mapping[str, str]) -> Reply:
        parts = urlsplit(path)
        _, _, rest = parts.path.partition(f"{_PATH}/")
        if parts.path == _PATH:
            return self._carried_out("list", headers, lambda: self._listed(parts.query))
        if rest.endswith("/results"):
            batch_id = rest.removesuffix("/results")
            return self._carried_out("results", headers, lambda: self._results(batch_id))
        if rest and "/" not in rest:
            return self._carried_out("retrieve", headers, lambda: self._retrieve(rest))
        return self._error(404, "Not found")

    def _carried_out(
        self, endpoint: Endpoint, headers: Mapping[str, str], work: Callable[[], Reply]
    ) -> Reply:
        with self._lock:
            self._calls.append(endpoint)
            queue = self._planned[endpoint]
            planned = queue.popleft() if queue else Reply()
        if not headers.get("authorization") and not headers.get("x-api-key"):
            return self._error(401, "invalid x-api-key")
        if planned.status >= 400:
            usual = self._error(planned.status, "a planned failure")
            return replace(planned, body=usual.body, headers={**usual.headers, **planned.headers})
        done = work()
        if planned.body is not None:
            return planned
        return replace(done, delay=planned.delay, cut_after=planned.cut_after)

    def _create(self, body: Json) -> Reply:
        if fault := batch_fault_of(body):
            return self._error(400, fault)
        requests = {item["custom_id"]: item["params"] for item in body["requests"]}
        with self._lock:
            batch = Batch(f"msgbatch_{next(self._numbers):08d}", requests)
            self._batches[batch.batch_id] = batch
        return Reply(body=batch.body(self.url + _PATH))

    def _retrieve(self, batch_id: str) -> Reply:
        batch = self._found(batch_id)
        if batch is None:
            return self._error(404, "Not found")
        if not self.holds or batch.is_canceled:
            batch.process(self._answered)
        return Reply(body=batch.body(self.url + _PATH))

    def _listed(self, query: str) -> Reply:
        asked = parse_qs(query)
        newest_first = self.batches[::-1]
        if not self.holds:
            self._end()
        names = [batch.batch_id for batch in newest_first]
        after = asked.get("after_id", [""])[0]
        start = names.index(after) + 1 if after in names else 0
        end = start + int(asked.get("limit", ["20"])[0])
        page = [batch.body(self.url + _PATH) for batch in newest_first[start:end]]
        return Reply(
            body={
                "data": page,
                "has_more": end < len(names),
                "first_id": page[0]["id"] if page else None,
                "last_id": page[-1]["id"] if page else None,
            }
        )

    def _results(self, batch_id: str) -> Reply:
        batch = self._found(batch_id)
        if batch is None or not batch.has_ended:
            return self._error(404, "Not found")
        return Reply(body=batch.lines(), headers={"content-type": "application/x-jsonl"})

    def _cancel(self, batch_id: str) -> Reply:
        batch = self._found(batch_id)
        if batch is None:
            return self._error(404, "Not found")
        batch.is_canceled = not batch.has_ended
        return Reply(body=batch.body(self.url + _PATH))

    def _found(self, batch_id: str) -> Batch | None:
        with self._lock:
            return self._batches.get(batch_id)

    def _answered(self, name: str, params: Json) -> Json:
        # The key was looked at when the batch was made.
        request = MessagesRequest("/v1/messages", {"x-api-key": "of the batch"}, params)
        result = self._result(request)
        if result is None:
            result = result_of(self._answer_to(request))
        if result["type"] == "succeeded":
            with self._lock:
                self.paid.append(name)
        return result

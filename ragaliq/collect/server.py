"""Receiver as an ASGI application: accepts requests, reads complete traces, reports counts."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ragaliq.collect.assembly import Assembly
from ragaliq.collect.requests import (
    JSON,
    PROTOBUF,
    BadRequestError,
    RawSpan,
    Request,
    answer,
    raw_spans,
)
from ragaliq.collect.spool import Spool
from ragaliq.core.log_once import LogOnce
from ragaliq.live.monitor import Monitor

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.5
_RETRY_AFTER = {"Retry-After": "2"}


class _Receiver:
    """Processes one request after the other on its own thread, so that the loop stays free."""

    def __init__(
        self,
        monitor: Monitor,
        assembly: Assembly,
        spool: Spool | None,
        *,
        max_request_bytes: int,
        max_waiting_bytes: int,
        body_timeout: float,
    ) -> None:
        self.monitor, self.assembly, self.spool = monitor, assembly, spool
        self.answers: Counter[str] = Counter()
        self.is_stopping = False
        self._log_once = LogOnce(logger)
        self._max_request, self._max_waiting = max_request_bytes, max_waiting_bytes
        self._body_timeout = body_timeout
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ragaliq-collect")

    # --- on the event loop --------------------------------------------------------------------

    async def receive(self, http: HttpRequest) -> Response:
        """Answer an export request."""
        try:
            response = await self._answer(http)
        except HTTPException as refused:
            response = PlainTextResponse(refused.detail, refused.status_code, refused.headers)
        self.answers[str(response.status_code)] += 1
        return response

    async def _answer(self, http: HttpRequest) -> Response:
        kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
        packing = http.headers.get("content-encoding", "identity").lower()
        if kind not in {JSON, PROTOBUF} or packing not in {"gzip", "identity"}:
            raise HTTPException(415, f"send {PROTOBUF} or {JSON}, plain or gzip")
        if self.is_stopping:
            raise HTTPException(503, "stopping", _RETRY_AFTER)
        if self.spool is not None and self.spool.is_full:
            raise HTTPException(429, "the spool is full", _RETRY_AFTER)
        body = await self._body(http)
        if self._waiting and self._waiting + len(body) > self._max_waiting:
            raise HTTPException(429, "too much is waiting", _RETRY_AFTER)
        signal = http.url.path.rpartition("/")[2]
        request = Request(signal, kind == JSON, packing == "gzip", body)
        self._waiting += len(body)
        try:
            rejected = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._take, request
            )
        except BadRequestError as error:
            raise HTTPException(400, str(error)) from None
        except OSError as error:
            self._log_once.failure("a request could not be spooled", error)
            raise HTTPException(503, "the spool cannot be written", _RETRY_AFTER) from None
        finally:
            self._waiting -= len(body)
        return Response(answer(request, rejected), media_type=kind)

    async def _body(self, http: HttpRequest) -> bytes:
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._body_timeout):
                async for part in http.stream():
                    size += len(part)
                    if size > self._max_request:
                        raise HTTPException(413, f"more than {self._max_request} bytes")
                    parts.append(part)
        except TimeoutError:
            raise HTTPException(408, "the body did not come in time") from None
        except ClientDisconnect:
            raise HTTPException(400, "the body broke off") from None
        return b"".join(parts)

    async def health(self, _: HttpRequest) -> Response:
        """Report whether it accepts requests."""
        return PlainTextResponse(
            "stopping\n" if self.is_stopping else "ok\n", 503 if self.is_stopping else 200
        )

    async def metrics(self, _: HttpRequest) -> Response:
        """Counts in Prometheus' format."""
        lines = "\n".join(self._metrics())
        return PlainTextResponse(f"{lines}\n", media_type="text/plain; version=0.0.4")

    def _metrics(self) -> Iterator[str]:
        stats, assembly = self.monitor.stats(), self.assembly
        yield from _metric("ragaliq_collect_requests_total", "counter", "code", self.answers)
        yield from _metric("ragaliq_collect_spans_total", "counter", "outcome", assembly.counts)
        yield from _metric("ragaliq_collect_traces", "gauge", "", {"": len(assembly)})
        yield from _metric("ragaliq_collect_bytes", "gauge", "", {"": assembly.size})
        yield from _metric("ragaliq_runs_total", "counter", "outcome", stats.outcomes)
        yield from _metric("ragaliq_incomplete_total", "counter", "reason", stats.incomplete)
        yield from _metric("ragaliq_runs_pending", "gauge", "", {"": stats.pending})
        yield from _metric("ragaliq_queue_size", "gauge", "", {"": stats.queued})
        scored = {
            f'{metric}",status="{status}': count
            for metric, by_status in stats.evaluations.items()
            for status, count in by_status.items()
        }
        yield from _metric("ragaliq_evaluations_total", "counter", "metric", scored)

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Read what a killed process left, then complete traces every half a second."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._replay)
        reading = asyncio.create_task(self._tick())
        yield
        self.is_stopping = True
        reading.cancel()
        await loop.run_in_executor(self._thread, self.assembly.close)
        self._thread.shutdown()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            await asyncio.get_running_loop().run_in_executor(self._thread, self.assembly.read_due)

    # --- on the receiver's thread -------------------------------------------------------------

    def _take(self, request: Request) -> int:
        """Add a request's spans, and spool it; return the number of unreadable spans."""
        before = self.assembly.counts["rejected"]
        kept = self.assembly.add(raw_spans(request, max_bytes=4 * self._max_request))
        if kept and self.spool is not None:
            self.spool.append(request, kept)
        return self.assembly.counts["rejected"] - before

    def _replay(self) -> None:
        if self.spool is None:
            return
        settled: set[str] = set()
        for request, settled, tell in self.spool.replay():
            spans = raw_spans(request, max_bytes=4 * self._max_request)
            try:
                tell(self.assembly.add(_without(spans, settled), is_replayed=True))
            except BadRequestError as error:
                logger.warning("a spooled request cannot be read: %s", error)
        self.assembly.ignore(settled)


def _without(spans: Iterator[RawSpan | None], settled: set[str]) -> Iterator[RawSpan | None]:
    return (span for span in spans if span is None or span.trace_id not in settled)


def _metric(name: str, kind: str, label: str, values: Mapping[str, int]) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    for value, count in dict(values).items():
        yield f'{name}{{{label}="{value}"}} {count}' if label else f"{name} {count}"


def collector_app(
    monitor: Monitor,
    assembly: Assembly,
    *,
    spool: Spool | None = None,
    max_request_bytes: int = 16 * 2**20,
    max_waiting_bytes: int = 64 * 2**20,
    body_timeout: float = 30.0,
) -> Starlette:
    """The receiver as an ASGI application; the monitor stays the caller's to close.

    Args:
        monitor: Scores the runs.
        assembly: Puts their spans together.
        spool: Keeps requests on disk until everything in them has its outcome.
        max_request_bytes: Bytes of a request's body; a larger one is answered with 413.
        max_waiting_bytes: Bytes of requests that wait to be read; beyond it they are answered with
            429.
        body_timeout: Seconds for a body to come; after that the answer is 408.
    """
    receiver = _Receiver(
        monitor,
        assembly,
        spool,
        max_request_bytes=max_request_bytes,
        max_waiting_bytes=max_waiting_bytes,
        body_timeout=body_timeout,
    )
    return Starlette(
        routes=[
            Route("/v1/traces", receiver.receive, methods=["POST"]),
            Route("/v1/logs", receiver.receive, methods=["POST"]),
            Route("/healthz", receiver.health),
            Route("/metrics", receiver.metrics),
        ],
        lifespan=receiver.lifespan,
    )

"""Cases from a product that stores traces: its unscored runs, and people's annotations.

The product's replies are stored in a temporary folder, readable by its owner alone, and read like
any file of traces; the folder is deleted with the reader.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import time
import weakref
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from ragaliq.core.concurrency import pause_before_retry
from ragaliq.core.dates import DATE_EXAMPLES, parse_moment
from ragaliq.core.passages import TextFetcher
from ragaliq.core.results import Status
from ragaliq.core.run import SpanTarget
from ragaliq.core.sync import run_sync
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.records.langfuse import LangfuseSink
from ragaliq.records.mlflow import MLflowSink
from ragaliq.records.phoenix import PhoenixSink
from ragaliq.records.record import SinkError
from ragaliq.traces.cases import TracedCase
from ragaliq.traces.mapping import SpanRule
from ragaliq.traces.reader import TraceReader
from ragaliq.traces.span import TraceSpan

_FORMS = "phoenix://PROJECT, phoenix+https://HOST/PROJECT, mlflow://EXPERIMENT or langfuse://"
_OPTIONS = ("since", "until", "limit")
_ATTEMPTS = 4
_LONGEST_PAUSE = 30.0
# Most seconds between a run's first span and its others.
_MARGIN = 600.0
# Seconds in which the rest of a run may still arrive.
_ARRIVING = 60.0
_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """Annotation of a run in the product, by a person or a program.

    Attributes:
        trace_id: The trace, 32 hexadecimal digits.
        span_id: The span; empty for the whole trace.
        name: Its name in the product, such as `faithfulness`.
        by_person: Whether a person made it.
        value: A number, a truth value or a label.
        author: The author, if the product names one.
        metadata: Its metadata.
    """

    trace_id: str
    span_id: str
    name: str
    by_person: bool
    value: float | str | None
    author: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def metric(self) -> str:
        """Metric that ragaliq scored, or failed for good; empty for other annotations."""
        status = self.metadata.get("ragaliq.status")
        if status not in list(Status) or Status(status).is_failure:
            return ""
        return self.name.removesuffix("_status")


class BackendReader(TraceReader):
    """Reads the runs of a product's project that ragaliq has not scored there.

    Args:
        address: `phoenix://PROJECT`, `mlflow://EXPERIMENT` or `langfuse://`; with the server's
            address, `phoenix+https://HOST/PROJECT`, else that comes from the product's variables.
            May end in `?since=2026-11-01&until=2026-11-08T12:00&limit=100`, times in UTC.
        fields: As for `read_cases`.
        mapping: Mapping of the application's own spans.
        resolve: Returns the texts of documents that spans identify by id only.

    Attributes:
        address: Address of the runs.
        sink: Writes scores back.
        scored: Number of runs with a score.
        unscored: Number of runs without a score, which are read.
        pipelines: Number of runs of each pipeline, scored or not.
        window: Time window, and the most runs.
    """

    def __init__(
        self,
        address: str,
        *,
        fields: Mapping[str, str],
        mapping: Sequence[SpanRule] = (),
        resolve: TextFetcher | None = None,
    ) -> None:
        folder = Path(mkdtemp(prefix="ragaliq-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        # Skip an unreadable span: it is one of many in a shared project.
        super().__init__(
            folder / "spans.jsonl",
            fields=fields,
            on_error="skip",
            mapping=mapping,
            resolve=resolve,
        )
        self._name = self.address = address
        self.window = AskedWindow.of(address)
        self._backend = _backend_of(address, self.window)
        self.sink = self._backend.sink
        self.pipelines: Counter[str] = Counter()
        self._asked_at = time.time()
        self._targets: dict[str, tuple[SpanTarget, float]] = {}
        self._metrics: dict[str, set[str]] = defaultdict(set)
        self._unscored: set[str] = set()
        try:
            run_sync(self._fetch())
            for case in self._cases():
                run = case.evaluated_run
                if run.target is not None:
                    self._targets[case.id] = run.target, run.ended_at
                    self.pipelines[run.pipeline] += 1
            found = run_sync(self._annotations())
        except SinkError as error:
            known = error.kind != "http_404"
            problem = f"{error}" if known else f"{self._backend.product} knows no such project"
            raise DatasetError(f"{address}: {problem}") from None
        for case_id, said in self._by_case(found).items():
            self._metrics[case_id] = {each.metric for each in said if each.metric}
        self.skip_scored()

    def skip_scored(self, metrics: Sequence[str] = ()) -> None:
        """Skip the runs with a score for each of these metrics; without metrics, for any."""
        wanted = set(metrics)
        left = [
            case_id
            for case_id in self._targets
            if not (wanted <= self._metrics[case_id] if wanted else self._metrics[case_id])
        ]
        newest = sorted(left, key=lambda case_id: -self._targets[case_id][1])
        self._unscored = set(newest[: self.window.limit])
        self.scored, self.unscored = len(self._targets) - len(left), len(self._unscored)

    def annotated(self) -> Iterator[tuple[RAGTestCase, list[Annotation]]]:
        """Runs that people annotated, scored or not, with their annotations."""
        try:
            found = run_sync(self._annotations())
        except SinkError as error:
            raise DatasetError(f"{self.address}: {error}") from None
        by_case = self._by_case([each for each in found if each.by_person])
        for case in self._cases():
            if case.id in by_case:
                yield case, by_case[case.id]

    def __iter__(self) -> Iterator[RAGTestCase]:
        return (case for case in self._cases() if case.id in self._unscored)

    def _runs_of(self, spans: list[TraceSpan]) -> list[TracedCase]:
        began = min(span.start_ns for span in spans) / 1e9
        known = {span.span_id for span in spans}
        is_whole = all(span.parent_id in known for span in spans if span.parent_id)
        ended = max(span.end_ns for span in spans) / 1e9
        is_running = not is_whole and ended > self._asked_at - _ARRIVING
        is_read = self.window.holds(began) and not is_running
        return super()._runs_of(spans) if is_read else []

    def _by_case(self, annotations: Sequence[Annotation]) -> dict[str, list[Annotation]]:
        """Annotations by their run: the span's, or each run of the trace."""
        found: defaultdict[str, list[Annotation]] = defaultdict(list)
        by_trace: defaultdict[str, list[Annotation]] = defaultdict(list)
        for each in annotations:
            by_trace[each.trace_id].append(each)
        for case_id, (target, _) in self._targets.items():
            for each in by_trace[target.trace_id]:
                if each.span_id in ("", target.span_id):
                    found[case_id].append(each)
        return dict(found)

    async def _fetch(self) -> None:
        try:
            with self.path.open("w", encoding="utf-8") as file:
                async for value in self._backend.spans():
                    file.write(json.dumps(value) + "\n")
        except BaseException:
            await self.sink.aclose()
            raise

    async def _annotations(self) -> list[Annotation]:
        targets = [target for target, _ in self._targets.values()]
        try:
            return [each async for each in self._backend.annotations(targets)]
        finally:
            await self.sink.aclose()


class AskedWindow(NamedTuple):
    """Time window of the runs in Unix seconds, and the number of newest ones."""

    since: float | None = None
    until: float | None = None
    limit: int | None = None

    @classmethod
    def of(cls, address: str) -> AskedWindow:
        """Parse the window of an address."""
        options = dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))
        address = _without_secrets(address)
        if unknown := sorted(options.keys() - set(_OPTIONS)):
            raise ConfigurationError(
                f"{address}: an address knows {', '.join(_OPTIONS)}, not {unknown[0]!r}"
            )
        limit = options.get("limit")
        if limit is not None and not (limit.isdecimal() and int(limit)):
            raise ConfigurationError(f"{address}: limit must be a whole number from 1 on")
        times: dict[str, float] = {}
        for name in ("since", "until"):
            if name in options:
                try:
                    times[name] = parse_moment(options[name]).timestamp()
                except (ValueError, OverflowError):
                    raise ConfigurationError(
                        f"{address}: {name} is not a date: write {DATE_EXAMPLES}"
                    ) from None
        return cls(times.get("since"), times.get("until"), int(limit) if limit else None)

    def holds(self, began: float) -> bool:
        """True if a run that began at this time is in the window."""
        return (self.since is None or began >= self.since) and (
            self.until is None or began < self.until
        )

    def asked(self, first: str, last: str) -> dict[str, str]:
        """Window as query parameters, wide enough for runs at its edges."""
        edges = {
            first: None if self.since is None else self.since - _MARGIN,
            last: None if self.until is None else self.until + _MARGIN,
        }
        return {
            name: datetime.fromtimestamp(edge, UTC).isoformat().replace("+00:00", "Z")
            for name, edge in edges.items()
            if edge is not None
        }


# --- the products ---------------------------------------------------------------------------------


class _Backend(ABC):
    """Client of a product's API, page by page.

    Its `place` is a web address; None for that of the product's variables.
    """

    product: str
    sink_type: type[PhoenixSink | MLflowSink | LangfuseSink]
    token = "cursor"  # noqa: S105 - the field by which a query names the next page
    needs_project = True

    def __init__(self, place: str | None, project: str, window: AskedWindow) -> None:
        self.sink = self.sink_type(place)
        self.project, self.window = project, window

    @abstractmethod
    def spans(self) -> AsyncIterator[Mapping[str, Any]]:
        """Spans of the runs, as values of a file of traces."""

    @abstractmethod
    def annotations(self, targets: Sequence[SpanTarget]) -> AsyncIterator[Annotation]:
        """Annotations of these runs; may include those of other runs."""

    @abstractmethod
    def next_of(self, page: Any) -> object:
        """Cursor of the next page."""

    async def pages(
        self, path: str, query: dict[str, Any], body: dict[str, Any] | None = None
    ) -> AsyncIterator[Any]:
        """All pages of a query; see `asked`."""
        asking = query if body is None else body
        while True:
            page = await self.asked(path, query, body)
            yield page
            following = self.next_of(page)
            if not following:
                return
            if following == asking.get(self.token):  # reading would never end
                raise SinkError(
                    f"{self.product} at {self.sink.endpoint} gives the same page for ever",
                    kind="http",
                    permanent=True,
                )
            asking[self.token] = following

    async def data(self, path: str, query: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Items of all pages."""
        async for page in self.pages(path, query):
            for each in _listed(page, "data"):
                yield each

    async def asked(self, path: str, query: Mapping[str, Any], body: object = None) -> Any:
        """One page of a query; temporary errors are retried."""
        where = f"{path}?{urlencode(query, doseq=True)}" if query else path
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                answer = await self.sink.ask("GET" if body is None else "POST", where, json=body)
            except SinkError as error:
                if error.permanent or error.kind == "http_404" or attempt == _ATTEMPTS:
                    raise
                pause = pause_before_retry(attempt, first=0.5, longest=_LONGEST_PAUSE)
                await asyncio.sleep(min(max(pause, error.retry_after or 0.0), _LONGEST_PAUSE))
            else:
                if isinstance(answer, dict):
                    return answer
                raise SinkError(
                    f"{self.product} at {self.sink.endpoint} gave no JSON object",
                    kind="http",
                    permanent=True,
                )
        raise AssertionError


def _without_secrets(address: str) -> str:
    """Address for a message, without anything that may be a key."""
    return re.sub(r"//[^/]*@", "//", address.partition("?")[0])


def _batches(ids: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(ids)
    while some := list(islice(left, size)):
        yield some


def _listed(held: Any, name: str) -> list[dict[str, Any]]:
    value = held.get(name) if isinstance(held, dict) else None
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _object(held: Any, name: str) -> dict[str, Any]:
    value = held.get(name)
    return value if isinstance(value, dict) else {}


def _value(value: Any) -> float | str | None:
    if isinstance(value, bool | int | float):
        return float(value)
    return value if isinstance(value, str) and value else None


class _Phoenix(_Backend):
    product = "Phoenix"
    sink_type = PhoenixSink

    @property
    def _path(self) -> str:
        return f"/v1/projects/{quote(self.project, safe='')}"

    def next_of(self, page: Any) -> object:
        return page.get("next_cursor")

    async def spans(self) -> AsyncIterator[Mapping[str, Any]]:
        query = {"limit": 500, **self.window.asked("start_time", "end_time")}
        async for span in self.data(f"{self._path}/spans", query):
            yield span

    async def annotations(self, targets: Sequence[SpanTarget]) -> AsyncIterator[Annotation]:
        traces = {target.span_id: target.trace_id for target in targets}
        for kind, ids in (("span", traces), ("trace", set(traces.values()))):
            for some in _batches(ids, _AT_ONCE):
                query: dict[str, Any] = {f"{kind}_ids": some, "limit": 1000}
                async for each in self._annotations(kind, query):
                    result, about = _object(each, "result"), str(each.get(f"{kind}_id", ""))
                    value = _value(result.get("score"))
                    yield Annotation(
                        trace_id=traces.get(about, about),
                        span_id=about if kind == "span" else "",
                        name=str(each.get("name", "")),
                        by_person=each.get("annotator_kind") == "HUMAN",
                        value=_value(result.get("label")) if value is None else value,
                        author=str(each.get("user_id") or ""),
                        metadata=_object(each, "metadata"),
                    )

    async def _annotations(self, kind: str, query: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        try:
            async for each in self.data(f"{self._path}/{kind}_annotations", query):
                yield each
        except SinkError as error:
            # Older servers lack annotations of traces; a trace without any is a 404 too.
            if error.kind != "http_404":
                raise


class _MLflow(_Backend):
    product = "MLflow"
    sink_type = MLflowSink
    token = "page_token"  # noqa: S105 - as above

    def next_of(self, page: Any) -> object:
        return page.get("next_page_token") if _listed(page, "traces") else None

    async def _traces(self) -> AsyncIterator[list[dict[str, Any]]]:
        found = await self.asked(
            "/api/2.0/mlflow/experiments/get-by-name", {"experiment_name": self.project}
        )
        experiment = {"experiment_id": _object(found, "experiment").get("experiment_id")}
        edges = (("timestamp_ms >=", self.window.since), ("timestamp_ms <", self.window.until))
        body: dict[str, Any] = {
            "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": experiment}],
            "filter": " AND ".join(f"{n} {int(t * 1000)}" for n, t in edges if t is not None),
            "max_results": _AT_ONCE,
            "order_by": ["timestamp_ms DESC"],
        }
        async for page in self.pages("/api/3.0/mlflow/traces/search", {}, body):
            yield _listed(page, "traces")

    async def spans(self) -> AsyncIterator[Mapping[str, Any]]:
        async for traces in self._traces():
            for some in _batches((str(trace.get("trace_id")) for trace in traces), 20):
                page = await self.asked("/api/3.0/mlflow/traces/batchGet", {"trace_ids": some})
                for trace in _listed(page, "traces"):
                    yield {"resourceSpans": [{"scopeSpans": [{"spans": _listed(trace, "spans")}]}]}

    async def annotations(self, targets: Sequence[SpanTarget]) -> AsyncIterator[Annotation]:
        wanted = {f"tr-{target.trace_id}" for target in targets}
        async for traces in self._traces():
            for trace in traces:
                if trace.get("trace_id") not in wanted:
                    continue
                for each in _listed(trace, "assessments"):
                    if each.get("valid") is False or "feedback" not in each:
                        continue
                    source = _object(each, "source")
                    yield Annotation(
                        trace_id=str(trace["trace_id"]).removeprefix("tr-"),
                        span_id="",  # it lists them by the trace alone
                        name=str(each.get("assessment_name", "")),
                        by_person=source.get("source_type") == "HUMAN",
                        value=_value(_object(each, "feedback").get("value")),
                        author=str(source.get("source_id") or ""),
                        metadata=_object(each, "metadata"),
                    )


class _Langfuse(_Backend):
    product = "Langfuse"
    sink_type = LangfuseSink
    needs_project = False  # the keys say which

    def next_of(self, page: Any) -> object:
        return _object(page, "meta").get("cursor")

    async def spans(self) -> AsyncIterator[Mapping[str, Any]]:
        query: dict[str, Any] = {
            "fields": "core,basic,io,trace_context",
            "limit": 500,
            **self.window.asked("fromStartTime", "toStartTime"),
        }
        async for each in self.data("/api/public/v2/observations", query):
            attributes = {
                "langfuse.observation.type": str(each.get("type", "")).lower(),
                "langfuse.observation.input": each.get("input"),
                "langfuse.observation.output": each.get("output"),
                "session.id": each.get("sessionId"),
            }
            yield {
                "name": each.get("name"),
                "context": {"trace_id": each.get("traceId"), "span_id": each.get("id")},
                "parent_id": each.get("parentObservationId"),
                "start_time": each.get("startTime"),
                "end_time": each.get("endTime"),
                "status_code": "ERROR" if each.get("level") == "ERROR" else "OK",
                "attributes": attributes,
            }

    async def annotations(self, targets: Sequence[SpanTarget]) -> AsyncIterator[Annotation]:
        wanted = dict.fromkeys(target.trace_id for target in targets)
        for some in _batches(wanted, 50):
            query = {
                "traceId": ",".join(some),
                "fields": "details,subject,annotation",
                "limit": 100,
            }
            async for each in self.data("/api/public/v3/scores", query):
                subject = _object(each, "subject")
                about = str(subject.get("id", ""))
                is_trace = subject.get("kind") == "trace"
                yield Annotation(
                    trace_id=about if is_trace else str(subject.get("traceId", "")),
                    span_id="" if is_trace else about,
                    name=str(each.get("name", "")),
                    by_person=each.get("source") == "ANNOTATION",
                    value=_value(each.get("value")),
                    author=str(each.get("authorUserId") or ""),
                    metadata=_object(each, "metadata"),
                )


_BACKENDS: dict[str, type[_Backend]] = {
    "phoenix": _Phoenix,
    "mlflow": _MLflow,
    "langfuse": _Langfuse,
}


def _backend_of(address: str, window: AskedWindow) -> _Backend:
    """Client of the product that an address names."""
    parts = urlsplit(address)
    product, _, scheme = parts.scheme.partition("+")
    kind = _BACKENDS[product]
    project, place = parts.path.strip("/"), parts.netloc
    if kind.needs_project and place and not project and not scheme and ":" not in place:
        place, project = "", place  # the name alone; the server is where its variables say
    if kind.needs_project != bool(project) or (scheme and not place):
        raise ConfigurationError(f"{_without_secrets(address)}: write it as {_FORMS}")
    at = f"{scheme or 'http'}://{place}" if place else None
    return kind(at, unquote(project), window)

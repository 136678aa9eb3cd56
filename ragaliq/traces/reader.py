"""Cases from a file of traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from ragaliq.capture.conversation import Conversations
from ragaliq.core.passages import TextFetcher
from ragaliq.core.test_case import RAGTestCase
from ragaliq.datasets.cases import CaseReader, OnError
from ragaliq.errors import ConfigurationError, DatasetError, RowError
from ragaliq.traces.cases import REASONS, AttributeNames, TracedCase, case_of, cases_of_trace
from ragaliq.traces.files import TraceGroups, spans_in
from ragaliq.traces.mapping import SpanRule
from ragaliq.traces.span import TraceSpan

_MOST_REMEMBERED = 64 * 2**20
"""Characters of texts that were fetched."""
_DESCRIBE_THEM = "describe your application's spans by --mapping (in Python mapping=)"
_NAMED = {"query": "question", "response": "answer", "context": "contexts"}


class _Remembered:
    """Caches the texts of documents: files are read twice, and runs share documents."""

    def __init__(self, fetch: TextFetcher) -> None:
        self._fetch = fetch
        self._texts: dict[str, str | None] = {}
        self._size = 0

    def __call__(self, ids: Sequence[str]) -> Mapping[str, str | None]:
        if self._size > _MOST_REMEMBERED:
            self._texts, self._size = {}, 0
        unknown = [each for each in ids if each not in self._texts]
        if unknown:
            found = self._fetch(unknown)
            if not isinstance(found, Mapping):
                return found
            self._texts |= {each: found.get(each) for each in unknown}
            self._size += sum(len(self._texts[each] or "") for each in unknown)
        return {each: self._texts[each] for each in ids}


class TraceReader(CaseReader):
    """Reader of the cases of the runs in a file of traces.

    Attributes:
        traces: Number of traces in the last reading.
        skipped_runs: Runs of the last reading without a case, by reason (`ragaliq.traces.cases`).
        late_spans: Spans that came after their trace had been processed to bound memory.
    """

    has_spans = True

    def __init__(
        self,
        path: Path,
        *,
        fields: Mapping[str, str] = MappingProxyType({}),
        on_error: OnError = "raise",
        mapping: Sequence[SpanRule] = (),
        resolve: TextFetcher | None = None,
    ) -> None:
        super().__init__(path, fields=fields, on_error=on_error)
        self._name = str(path)
        if unknown := sorted(set(fields) - set(_NAMED)):
            raise ConfigurationError(
                f"fields: traces have no {unknown[0]!r}; name the span attribute that holds "
                f"{', '.join(_NAMED)}"
            )
        self._names = AttributeNames(**{_NAMED[field]: name for field, name in fields.items()})
        self._mapping = mapping
        self._resolve = None if resolve is None else _Remembered(resolve)
        self.traces = 0
        self.skipped_runs: Counter[str] = Counter()
        self.late_spans = 0
        self._conversations = Conversations()

    def __iter__(self) -> Iterator[RAGTestCase]:
        found = False
        for case in self._cases():
            found = True
            yield case
        if not found:
            raise DatasetError(f"{self._name}: {self._nothing()}")

    def _cases(self) -> Iterator[RAGTestCase]:
        self.skipped, self.skipped_rows = 0, []
        self.traces, self.skipped_runs, self.late_spans = 0, Counter(), 0
        self._conversations = Conversations()
        unseen = set(self._fields.values())
        for spans in self._traces():
            if unseen:
                unseen.difference_update(*(span.attributes for span in spans))
            self.traces += 1
            for traced in self._runs_of(spans):
                case = self._to_case(traced)
                if case is not None:
                    yield case
        for field, name in self._fields.items():
            if self.traces and name in unseen:
                raise DatasetError(
                    f"{self._name}: no span has the attribute {name!r}, which was named as the "
                    f"{field}"
                )

    def remarks(self) -> Iterator[str]:
        """Runs without a case by reason, and late spans."""
        if self.skipped_runs:
            yield f"runs skipped, of {self.traces:,} traces:"
        for reason, count in self.skipped_runs.most_common():
            yield f"  {count:,} {reason}: {REASONS.get(reason, reason)}"
        if self.late_spans:
            yield f"  {self.late_spans:,} spans came too late for their trace; sort the file"

    def runs(self) -> Iterator[TracedCase]:
        """All runs of the file, including those without a case."""
        for spans in self._traces():
            yield from self._runs_of(spans)

    def traces_with_runs(self) -> Iterator[tuple[list[TraceSpan], list[TracedCase]]]:
        """All traces of the file, with their runs."""
        for spans in self._traces():
            yield spans, self._runs_of(spans)

    def _runs_of(self, spans: list[TraceSpan]) -> list[TracedCase]:
        return cases_of_trace(
            spans, attribute_names=self._names, mapping=self._mapping, resolve=self._resolve
        )

    def _traces(self) -> Iterator[list[TraceSpan]]:
        groups = TraceGroups()
        for each in spans_in(self.path):
            if isinstance(each, RowError):
                self._bad(each, is_first=not groups.spans)
            else:
                yield from groups.add(each)
                self.late_spans = groups.late
        yield from groups.rest()

    def _to_case(self, traced: TracedCase) -> RAGTestCase | None:
        name = f"{traced.run.pipeline}\n{traced.run.session_id}"
        if traced.log is not None and traced.run.session_id:
            traced.log.said_before = self._conversations.add_replies(
                name, traced.log.other_replies()
            )
            traced.log.remembered = self._conversations.turns(name)
        try:
            case = case_of(traced)
        except ValidationError:
            case, reason = None, "malformed"
        else:
            reason = traced.reason
        if case is None:
            self.skipped_runs[reason] += 1
        elif traced.run.session_id:
            case = self._conversations.joined(case, name, fills=False)
        return case

    def _nothing(self) -> str:
        if not self.traces:
            return "there are no spans in it"
        if not self.skipped_runs:
            way = "no rule of the mapping matches one" if self._mapping else _DESCRIBE_THEM
            return (
                f"no span of its {self.traces} traces says that it is a chain, a retriever or a "
                f"model, as OpenInference's, GenAI's and OpenLLMetry's do; {way}"
            )
        counts = "; ".join(
            f"{count} {reason} ({REASONS.get(reason, reason)})"
            for reason, count in self.skipped_runs.most_common()
        )
        return f"no run in its {self.traces} traces can be evaluated: {counts}"

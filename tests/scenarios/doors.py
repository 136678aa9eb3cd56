"""An application's runs as handler, span processor and file see them."""

import json
from contextlib import contextmanager

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otlp import FORMS
from rag_parts import QUESTION

from ragaliq import Monitor
from ragaliq.errors import DatasetError
from ragaliq.testing import ScriptedJudge
from ragaliq.traces import RagaliqSpanProcessor, TraceReader


class Doors:
    """A tracer provider that each of the three ways listens to."""

    def __init__(self, folder):
        self.folder = folder
        self.provider, self.exporter = TracerProvider(), InMemorySpanExporter()
        self.live, self.seen, self.skipped = [], [], {}
        self.monitor = Monitor(judge=ScriptedJudge(), on_result=self.live.append)
        self.watching = Monitor(judge=ScriptedJudge(), on_result=self.seen.append)
        self.processor = RagaliqSpanProcessor(self.watching)
        self.provider.add_span_processor(self.processor)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @contextmanager
    def of(self, instrumentor):
        instrumentor.instrument(tracer_provider=self.provider, skip_dep_check=True)
        try:
            yield
        finally:
            instrumentor.uninstrument()

    def close(self):
        assert self.processor.errors == 0
        self.provider.shutdown()
        self.monitor.close(5)
        self.watching.close(5)

    def cases(self, form="t.pb"):
        """The cases of the handler, of the processor and of the file."""
        assert self.monitor.flush(30)
        assert self.processor.force_flush()
        written = FORMS.get(form, FORMS["traces.pb"])(self.exporter.get_finished_spans())
        path = self.folder / form
        path.write_bytes(written if isinstance(written, bytes) else written.encode())
        reader = TraceReader(path)
        try:
            read = list(reader)
        except DatasetError:
            read = []
        self.skipped = dict(reader.skipped_runs)
        lists = (sorted(each, key=lambda e: e.run.ended_at) for each in (self.live, self.seen))
        return *([each.case for each in found] for found in lists), read

    def assert_without_case(self):
        """That there is none, everywhere for the same reason."""
        assert self.cases() == ([], [], [])
        incomplete = self.monitor.stats().incomplete
        assert self.watching.stats().incomplete == self.skipped == incomplete != {}
        assert len(self.processor) == 0

    def assert_shape(self, shape):
        """That an application of the table gave its case, or had the reason for none."""
        if shape.is_traced and shape.why_not:
            self.assert_without_case()
        elif shape.is_traced:
            self.assert_one_case(QUESTION, shape.texts, shape.answer)
        live, *_ = self.cases()
        cases = [(case.query, case.context_texts, case.response) for case in live]
        assert all(shape.prompt in case.prompt_context for case in live)
        assert cases == ([] if shape.why_not else [(QUESTION, shape.texts, shape.answer)])
        assert self.monitor.stats().incomplete == ({shape.why_not: 1} if shape.why_not else {})
        assert not shape.ids or self.live[0].case.chunk_ids == shape.ids

    def assert_one_case(self, question, texts, answer):
        """That there is one, everywhere the same, and this one."""
        for form in FORMS if "äöü" in "".join(texts) else ("t.pb",):
            (case,), (seen,), (read,) = self.cases(form)
            assert (case.query, case.context_texts, case.response) == (question, texts, answer)
            assert as_bytes(seen) == as_bytes(case)
            assert as_bytes(read) == as_bytes(case), form
        (live,), (seen,) = self.live, self.seen
        assert live.target.span_id == seen.target.span_id
        assert live.run.framework == seen.run.framework


def as_bytes(case):
    """Everything of a case but how it is called, where it was found and its run."""
    # Spans show prompts in forms of their own.
    labels = {"id", "tags", "metadata", "sources", "prompt_context", "run"}
    held = case.model_dump(mode="json", exclude=labels)
    return json.dumps(held).encode()

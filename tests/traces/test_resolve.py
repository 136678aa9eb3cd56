"""Documents of which a trace shows only the ids: their texts are fetched."""

import asyncio
import logging
import threading

import pytest
from hand_written import ANSWER, QUESTION, ROOT, TEXTS, chain, documents, genai, io, retriever, span
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otlp import document

from ragaliq import (
    ConfigurationError,
    Monitor,
    RAGTestCase,
    TelemetryOptions,
)
from ragaliq.capture import Conversations
from ragaliq.core.test_case import CaseSources
from ragaliq.datasets import read_cases
from ragaliq.traces import RagaliqSpanProcessor, SpanEvent, cases_of_trace

STORE = {f"d{n}": text for n, text in enumerate(TEXTS)}


def fetch(ids):
    return {each: STORE[each] for each in ids if each in STORE}


def named_by_genai(*ids):
    found = [{"id": each, "score": 0.5} for each in ids]
    return genai("retrieval", at=(10, 20), retrieval__documents=found)


def searched(**more):
    return span("RETRIEVER", parent=ROOT, at=(10, 20), **more)


IDS = {f"retrieval.documents.{n}.document.id": each for n, each in enumerate(STORE)}
HIDDEN = {f"retrieval.documents.{n}.document.content": "__REDACTED__" for n in range(2)}
HITS = [SpanEvent("db.query.result", {"db.query.result.id": each}) for each in STORE]
STORED = {"attributes": {"db.system": "chroma"}, "events": tuple(HITS)}
CHOSEN = {
    "reranker.input_documents.0.document.id": "d0",
    "reranker.input_documents.1.document.id": "d1",
    "reranker.output_documents.0.document.id": "d0",
}
RERANKED = [
    searched(attributes=IDS),
    span("RERANKER", parent=ROOT, at=(21, 25), attributes=CHOSEN),
]


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ([named_by_genai("d0", "d1")], ["d0", "d1"]),
        ([searched(attributes=IDS)], ["d0", "d1"]),
        ([searched(attributes=IDS | HIDDEN)], ["d0", "d1"]),
        ([span(parent=ROOT, at=(10, 20), **STORED)], ["d0", "d1"]),
        (RERANKED, ["d0"]),
    ],
    ids=["GenAI", "OpenInference", "redacted", "OpenLLMetry", "reranked"],
)
def test_the_texts_of_documents_that_are_only_named(search, expected):
    spans = [chain(), *search]
    (hidden,) = cases_of_trace(spans)
    assert hidden.reason == "content_hidden"
    asked = []
    (found,) = cases_of_trace(spans, resolve=lambda ids: (asked.extend(ids), fetch(ids))[1])
    assert found.reason == ""
    assert [(p.id, p.text) for p in found.log.found_context.passages] == [
        (i, STORE[i]) for i in expected
    ]
    assert asked == ["d0", "d1"]
    assert found.log.sources.has_fetched_texts


def test_texts_that_the_trace_shows_are_not_fetched():
    asked = []
    (found,) = cases_of_trace([chain(), retriever()], resolve=asked.append)
    assert found.log is not None
    assert not found.log.sources.has_fetched_texts
    assert asked == []


def test_a_context_of_which_a_part_stays_unknown_is_not_judged():
    (found,) = cases_of_trace([chain(), named_by_genai("d0", "gone")], resolve=fetch)
    assert found.reason == "content_hidden"


def raises(ids):
    raise ConnectionError(f"secret {ids}")


@pytest.mark.parametrize(
    ("resolve", "logged"),
    [
        (raises, "ConnectionError (test_resolve.py, line"),
        (list, "must return a dictionary"),
        (lambda ids: None, "must return a dictionary"),
        (lambda ids: dict.fromkeys(ids, 1), "must return a dictionary"),
    ],
)
def test_a_function_that_fails_has_a_reason_of_its_own(resolve, logged, caplog, monkeypatch):
    from ragaliq.core.log_once import LogOnce

    monkeypatch.setattr("ragaliq.traces.cases._LOG_ONCE", LogOnce(logging.getLogger("ragaliq")))
    (found,) = cases_of_trace([chain(), named_by_genai("d0", "d1")], resolve=resolve)
    assert found.reason == "texts_not_fetched"
    assert logged in caplog.text
    assert "secret" not in caplog.text


async def fetches_later(ids):
    return {}


@pytest.mark.parametrize("wrong", [fetches_later, "app:fetch"])
def test_what_cannot_fetch_is_refused_at_once(wrong, tmp_path):
    monitor = Monitor(judge="local")
    with pytest.raises(ConfigurationError, match="resolve must be a function"):
        RagaliqSpanProcessor(monitor, resolve=wrong)
    with pytest.raises(ConfigurationError, match="resolve must be a function"):
        read_cases(tmp_path / "traces.json", resolve=wrong)
    monitor.close(5)


def ask(provider):
    tracer = provider.get_tracer("shop")
    asked = {"openinference.span.kind": "CHAIN", **io(QUESTION, ANSWER)}
    named = {k: v for k, v in documents().items() if k.endswith("id")}
    found = {"openinference.span.kind": "RETRIEVER", **named}
    with tracer.start_as_current_span("rag", attributes=asked):
        tracer.start_span("search", attributes=found).end()


def test_live_they_are_fetched_where_blocking_does_no_harm_and_never_leave(sink):
    seen, cases = [], []

    def store(ids):
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        seen.append((sorted(ids), threading.current_thread().name))
        return {f"doc-{n}": f"{text} Confidential." for n, text in enumerate(TEXTS)}

    spans, logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
    own, events = TracerProvider(), LoggerProvider()
    own.add_span_processor(SimpleSpanProcessor(spans))
    events.add_log_record_processor(SimpleLogRecordProcessor(logs))
    monitor = Monitor(
        judge="local",
        sinks=[sink],
        capture_content=True,
        telemetry=TelemetryOptions(tracer_provider=own, logger_provider=events),
        on_result=lambda each: cases.append(each.case),
    )
    provider = TracerProvider()
    provider.add_span_processor(RagaliqSpanProcessor(monitor, resolve=store, grace=0.01))
    ask(provider)
    while not seen:
        threading.Event().wait(0.01)
    assert monitor.flush(30)
    monitor.close(5)
    ((ids, thread),) = seen
    assert ids == ["doc-0", "doc-1"]
    assert thread == "ragaliq-traces"
    assert all(text.endswith("Confidential.") for text in cases[0].context_texts)
    emitted = [span.to_json() for span in spans.get_finished_spans()]
    emitted += [each.log_record.attributes for each in logs.get_finished_logs()]
    emitted += [record.model_dump_json() for record in sink.records]
    assert len(emitted) >= 4
    assert ANSWER in str(emitted)  # as the application wants content captured
    assert "Confidential" not in str(emitted)


def test_a_flush_does_not_wait_for_ever_for_texts(monkeypatch, following):
    monkeypatch.setattr("ragaliq.traces.processor._READING_SECONDS", 0.1)
    answered = threading.Event()
    each = following(resolve=lambda ids: answered.wait(30) and {})
    ask(each.app.provider)
    assert not each.monitor.flush(0.1)
    assert each.monitor.stats().pending == 1
    answered.set()
    assert each.monitor.flush(30)
    assert each.monitor.stats().incomplete == {"content_hidden": 1}


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError])
def test_a_function_that_ends_its_thread_costs_its_run_only(error, following):
    def store(ids):
        if asked():
            raise error
        return {f"doc-{n}": text for n, text in enumerate(TEXTS)}

    asked = iter([True, False]).__next__
    each = following(resolve=store)
    for _ in range(2):
        ask(each.app.provider)
        assert each.monitor.flush(30)
    assert each.monitor.stats().outcomes == {"incomplete_run": 1, "evaluated": 1}
    assert each.monitor.stats().incomplete == {"internal_error": 1}


def test_a_file_asks_for_each_text_once(written):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for _ in range(2):
        ask(provider)
    path = written("traces.json", document(exporter.get_finished_spans()))
    asked = []

    def store(ids):
        asked.append(sorted(ids))
        return {f"doc-{n}": text for n, text in enumerate(TEXTS)}

    cases = read_cases(path, resolve=store)
    for _ in range(2):
        assert [case.context_texts for case in cases] == [TEXTS, TEXTS]
    assert asked == [["doc-0", "doc-1"]]


def test_fetched_texts_mark_the_later_turns_of_their_conversation_too():
    conversations = Conversations()
    fetched = RAGTestCase(
        query="How long?",
        context=["Confidential."],
        response="Five days.",
        sources=CaseSources(has_fetched_texts=True),
    )
    later = RAGTestCase(query="And for children?", context=["Shown."], response="Three days.")
    conversations.joined(fetched, "one")
    for _ in range(2):
        marked = conversations.joined(later, "one")
        assert "Confidential." in marked.history[1].context_texts
        assert marked.sources.has_fetched_texts
    conversations.joined(later, "another")
    assert not conversations.joined(later, "another").sources.has_fetched_texts


def test_texts_are_fetched_for_traces_only(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("query,response\n")
    with pytest.raises(ConfigurationError, match="resolve is for traces"):
        read_cases(path, resolve=fetch)

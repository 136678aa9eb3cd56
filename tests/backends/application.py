"""A LangChain application, instrumented with OpenInference and watched by ragaliq."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import EvaluationRecord, Monitor, Status, TelemetryOptions

PIPELINE = "shop-answers"
HANDBOOK = [
    "The shop is open from nine to five on weekdays. It is closed on Sundays.",
    "Bicycles can be returned within 30 days. The warranty on frames is five years.",
]
# Question and answer; the second answer says a number that the handbook does not.
ANSWERS = {
    "When is the shop open?": "The shop is open from nine to five on weekdays.",
    "What about returns?": (
        "Bicycles can be returned within 30 days. The warranty on frames is five years. "
        "A return costs 45 euros."
    ),
}


class Kept:
    """A sink that keeps the records, to compare with what the product has."""

    name = "kept"

    def __init__(self) -> None:
        self.records: list[EvaluationRecord] = []

    async def write(self, records: Any) -> None:
        self.records.extend(records)

    async def aclose(self) -> None:
        pass


class Handbook(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(page_content=text) for text in HANDBOOK]


def chain() -> Any:
    def answer(prompt: Any) -> str:
        question = prompt.to_messages()[-1].content
        model = GenericFakeChatModel(messages=iter([AIMessage(ANSWERS[question])]))
        return str(model.invoke(prompt).content)

    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    parts = {"context": Handbook(), "question": RunnablePassthrough()}
    return (parts | prompt | RunnableLambda(answer)).with_config(run_name=PIPELINE)


@contextmanager
def tracing(
    url: str, resource: dict[str, str], headers: dict[str, str] | None = None
) -> Iterator[TracerProvider]:
    """The application's own tracing, exported to `url` by OTLP."""
    provider = TracerProvider(resource=Resource.create(resource), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(f"{url}/v1/traces", headers=headers)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)
    try:
        yield provider
    finally:
        instrumentor.uninstrument()
        provider.shutdown()


def answer_all(provider: TracerProvider, sink: object) -> list[EvaluationRecord]:
    """Answer every question, have the answers judged and sent; what the sink was given."""
    kept = Kept()
    monitor = Monitor(
        judge="local",
        sinks=[sink, kept],
        capture_content=True,
        telemetry=TelemetryOptions(tracer_provider=provider),
    )
    with monitor:
        application = chain()
        for question in ANSWERS:
            application.invoke(question, {"callbacks": [RagaliqCallbackHandler(monitor)]})
        assert monitor.flush(60)
        # The spans first: a sink may only speak of what is known.
        provider.force_flush()
    stats = monitor.stats()
    assert dict(stats.outcomes) == {"evaluated": len(ANSWERS)}
    for counts in stats.sinks.values():
        assert (counts.written, counts.failed, counts.dropped) == (len(ANSWERS), 0, 0), stats
    return kept.records


def failed(record: EvaluationRecord) -> EvaluationRecord:
    """The same run, had the judge been too slow."""
    metric = record.metrics[0].model_copy(
        update={
            "metric_id": "f" * 32,
            "name": "timed_out",
            "status": Status.JUDGE_TIMEOUT,
            "score": None,
            "passed": None,
            "error_type": "JudgeTimeoutError",
            "reasoning": None,
            "claims": (),
        }
    )
    return record.model_copy(update={"metrics": (metric,)})


def fetch(url: str, body: object = None) -> Any:
    """JSON from a REST interface."""
    data = None if body is None else json.dumps(body).encode()
    kind = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, kind), timeout=30) as answer:
        return json.load(answer)


def eventually(read: Any, enough: Any, seconds: float = 60.0) -> Any:
    """What `read` returns as soon as `enough` says that it is all there."""
    deadline = time.monotonic() + seconds
    while not enough(found := read()):
        assert time.monotonic() < deadline, f"not there after {seconds:g} s: {found}"
        time.sleep(0.3)
    return found

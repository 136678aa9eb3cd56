"""A LangChain application, instrumented with OpenInference and watched by ragaliq."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import EvaluationRecord, Monitor, Status, TelemetryOptions

EXAMPLES = Path(__file__).parents[2] / "examples/backends"
sys.path.insert(0, str(EXAMPLES))

from shop import ANSWERS, PIPELINE, chain  # noqa: E402 - beside the example

__all__ = [
    "ANSWERS",
    "PIPELINE",
    "answer_all",
    "answer_unwatched",
    "eventually",
    "failed",
    "fetch",
    "ragaliq",
    "tracing",
    "try_it",
]


class Kept:
    """A sink that keeps the records, to compare with what the product has."""

    name = "kept"

    def __init__(self) -> None:
        self.records: list[EvaluationRecord] = []

    async def write(self, records: Any) -> None:
        self.records.extend(records)

    async def aclose(self) -> None:
        pass


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


def answer_unwatched(provider: TracerProvider) -> None:
    """Answer every question in an application that knows nothing of ragaliq."""
    for question in ANSWERS:
        chain().invoke(question)
    provider.force_flush()


def ragaliq(*arguments: str, environment: dict[str, str]) -> str:
    """Run the command line in a process of its own; what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "ragaliq.cli", *arguments],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def try_it(backend: str, environment: dict[str, str]) -> str:
    """Run the example that the documentation tells users to run; what it prints."""
    command = [sys.executable, str(EXAMPLES / "try_backend.py"), backend]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path), **environment}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def failed(record: EvaluationRecord) -> EvaluationRecord:
    """The same run, had the judge been too slow."""
    result = next(iter(record.results.values())).model_copy(
        update={
            "evaluator_name": "timed_out",
            "status": Status.JUDGE_TIMEOUT,
            "score": None,
            "passed": None,
            "error_type": "JudgeTimeoutError",
            "reasoning": "",
            "claims": (),
        }
    )
    return record.model_copy(update={"results": {"timed_out": result}})


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

"""Sends the verdicts about two answers to a backend that is running.

    python examples/backends/try_backend.py phoenix | mlflow | langfuse | otlp

Where the backend is, and its keys, come from its own environment variables. The application is
traced with OpenInference; the judge is the embedded one, so no key for a model is needed.
"""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from collections.abc import Callable
from typing import NamedTuple

try:
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from shop import ANSWERS, PIPELINE, chain

    from langchain_ragaliq import RagaliqCallbackHandler
    from ragaliq import (
        ConfigurationError,
        LangfuseSink,
        MLflowSink,
        Monitor,
        PhoenixSink,
        Sink,
        telemetry,
    )
except ImportError as error:
    sys.exit(
        f"{error}; install ragaliq[otlp], langchain-ragaliq and "
        "openinference-instrumentation-langchain"
    )


class Backend(NamedTuple):
    """Addresses of spans and verdicts, and the page that shows both."""

    tracing: TracerProvider
    sinks: list[Sink]
    place: str
    end: Callable[[], object]


def phoenix() -> Backend:
    """Spans into the project `shop`, verdicts as annotations."""
    url = os.environ.get("PHOENIX_BASE_URL", "http://localhost:6006")
    provider = traced(f"{url}/v1/traces", {"openinference.project.name": "shop"})
    return Backend(provider, [PhoenixSink(url)], f"{url}, project shop", provider.shutdown)


def mlflow() -> Backend:
    """Spans into an experiment, verdicts as feedback."""
    url = os.environ.get("MLFLOW_TRACKING_URI", "http://localhost:5000")
    experiment = os.environ.get("MLFLOW_EXPERIMENT_ID", "0")
    provider = traced(f"{url}/v1/traces", {}, {"x-mlflow-experiment-id": experiment})
    place = f"{url}/#/experiments/{experiment}/traces"
    return Backend(provider, [MLflowSink(url)], place, provider.shutdown)


def langfuse() -> Backend:
    """Spans into the keys' project, verdicts as scores."""
    url = os.environ.get("LANGFUSE_BASE_URL", "https://cloud.langfuse.com")
    sink = LangfuseSink(url)  # says so when there are no keys
    keys = f"{os.environ['LANGFUSE_PUBLIC_KEY']}:{os.environ['LANGFUSE_SECRET_KEY']}"
    headers = {
        "authorization": f"Basic {b64encode(keys.encode()).decode()}",
        "x-langfuse-ingestion-version": "4",  # without it spans may take ten minutes to be seen
    }
    provider = traced(f"{url}/api/public/otel/v1/traces", {}, headers)
    return Backend(provider, [sink], url, provider.shutdown)


def otlp() -> Backend:
    """Spans, events and metrics to OTEL_EXPORTER_OTLP_ENDPOINT, and nothing else."""
    setup = telemetry.configure(service_name="shop")
    place = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    return Backend(setup.tracer_provider, [], place, setup.shutdown)


def traced(
    endpoint: str, resource: dict[str, str], headers: dict[str, str] | None = None
) -> TracerProvider:
    """The application's tracing, as it would be set up without ragaliq."""
    provider = TracerProvider(resource=Resource.create({"service.name": "shop", **resource}))
    exporter = OTLPSpanExporter(endpoint, headers=headers)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider


BACKENDS = {"phoenix": phoenix, "mlflow": mlflow, "langfuse": langfuse, "otlp": otlp}


def main(name: str) -> None:
    backend = BACKENDS[name]()
    LangChainInstrumentor().instrument(tracer_provider=backend.tracing)
    # Two, to see that each arrives. The embedded judge is weak at relevance, and says so.
    metrics = ["faithfulness", "relevance"]
    monitor = Monitor(judge="local", metrics=metrics, sinks=backend.sinks, capture_content=True)
    application, handler = chain(), RagaliqCallbackHandler(monitor)
    for question in ANSWERS:
        application.invoke(question, {"callbacks": [handler]})
    # The application's spans first: a backend is asked to annotate what it knows.
    backend.tracing.force_flush()
    monitor.close(60)
    backend.end()
    stats = monitor.stats()
    print(f"evaluated: {dict(stats.outcomes)}")
    for sink, counts in stats.sinks.items():
        print(f"{sink}: {counts.written} written, {counts.failed} failed {dict(counts.errors)}")
    print(f"look at {backend.place} for {PIPELINE}")
    if any(counts.failed or counts.dropped for counts in stats.sinks.values()):
        sys.exit(1)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in BACKENDS:
        sys.exit(f"usage: try_backend.py {' | '.join(BACKENDS)}")
    try:
        main(sys.argv[1])
    except ConfigurationError as error:
        sys.exit(str(error))

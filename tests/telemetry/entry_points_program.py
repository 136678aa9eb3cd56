"""Run by `test_entry_points.py`: has each entry point judge a case, and prints what is emitted."""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragaliq import (
    Monitor,
    RAGTestCase,
    RunInfo,
    SQLiteStore,
    evaluate,
    score_batch,
)
from ragaliq.cli.app import run as command_line
from ragaliq.pytest_plugin import assert_rag
from ragaliq.worker import WorkerSettings
from ragaliq.worker.brokers import Broker
from ragaliq.worker.message import JobMessage
from ragaliq.worker.worker import Worker

CASE = {
    "query": "When are refunds paid?",
    "context": ["Refunds are paid within five days."],
    "response": "Refunds are paid within five days.",
}
METRICS = ("faithfulness", "relevance")


def monitor() -> None:
    with Monitor(executor="thread", metrics=METRICS) as live:
        live.submit(RAGTestCase(**CASE))
        assert live.flush(60.0)


def evaluated() -> None:
    evaluate([RAGTestCase(**CASE)], metrics=METRICS)


def table() -> None:
    rows = pa.Table.from_pylist(
        [{"question": CASE["query"], "answer": CASE["response"], "contexts": CASE["context"]}]
    )
    score_batch(rows, metrics=METRICS)


def asserted() -> None:
    assert_rag(RAGTestCase(**CASE), faithfulness=0.5, relevance=0.0)


class InMemory(Broker):
    """A broker that brings one message and takes nothing."""

    def _native(self, url, **options):
        return None

    def subscribe(self, fresh, again):
        pass

    async def publish(self, body, to):
        raise AssertionError(body)

    async def connect(self):
        pass

    async def deliveries(self, message):
        return 1

    async def done(self, message):
        pass

    async def dead_messages(self):
        return []


def worker() -> None:
    job = JobMessage.of(RAGTestCase(**CASE, run=RunInfo(run_id="job", ended_at=1.0)), METRICS)
    message = SimpleNamespace(body=job.encoded())

    async def work() -> None:
        settings = WorkerSettings(judge="local", metrics=METRICS, sinks=[SQLiteStore("kept.db")])
        working = Worker(settings, InMemory("memory://"))
        await working.fresh(message)
        await working.aclose()

    asyncio.run(work())


def file() -> None:
    Path("cases.jsonl").write_text(json.dumps({"id": "a"} | CASE) + "\n", encoding="utf-8")
    argv, stdout = sys.argv, sys.stdout
    asked = ["evaluate", "cases.jsonl", "--metrics", ",".join(METRICS)]
    sys.argv, sys.stdout = ["ragaliq", *asked], sys.stderr
    try:
        assert command_line() == 0
    finally:
        sys.argv, sys.stdout = argv, stdout


def main() -> None:
    spans, logs, reader = (
        InMemorySpanExporter(),
        InMemoryLogRecordExporter(),
        InMemoryMetricReader(),
    )
    tracer_provider, logger_provider = TracerProvider(), LoggerProvider()
    tracer_provider.add_span_processor(SimpleSpanProcessor(spans))
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    trace.set_tracer_provider(tracer_provider)
    _logs.set_logger_provider(logger_provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    emitted = {}
    counted: dict[str, int] = {}
    for entry in (monitor, evaluated, table, asserted, file, worker):
        entry()
        before, counted = counted, _counts(reader)
        emitted[entry.__name__] = {
            "spans": sorted(span.name.split(" (")[0] for span in spans.get_finished_spans()),
            "events": sorted(
                str(log.log_record.attributes["gen_ai.evaluation.name"])
                for log in logs.get_finished_logs()
            ),
            "evaluations": {key: n - before.get(key, 0) for key, n in counted.items()},
        }
        spans.clear()
        logs.clear()
    sys.stdout.write(json.dumps(emitted))


def _counts(reader: InMemoryMetricReader) -> dict[str, int]:
    data = reader.get_metrics_data()
    found = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
    counts: dict[str, int] = {}
    for metric in found:
        if metric.name == "ragaliq.evaluation.count":
            for point in metric.data.data_points:
                name = point.attributes["gen_ai.evaluation.name"]
                counts[name] = counts.get(name, 0) + point.value
    return counts


if __name__ == "__main__":
    main()

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragaliq import (
    ClaimDetail,
    ContextChunk,
    EvaluationResult,
    RAGTestCase,
    RunInfo,
    SpanTarget,
    Status,
    TelemetryOptions,
)
from ragaliq.telemetry import Emitter

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "langchain", HERE.parent / "applications"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

SECRET = "Zanzibar"


@pytest.fixture
def sdk():
    """Private providers that keep what is emitted."""
    spans, logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
    tracer_provider, logger_provider = TracerProvider(), LoggerProvider()
    tracer_provider.add_span_processor(SimpleSpanProcessor(spans))
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    reader = InMemoryMetricReader()
    providers = {
        "tracer_provider": tracer_provider,
        "logger_provider": logger_provider,
        "meter_provider": MeterProvider([reader]),
    }

    def metrics():
        data = reader.get_metrics_data()
        scopes = [s for r in data.resource_metrics for s in r.scope_metrics] if data else []
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    yield SimpleNamespace(
        providers=providers,
        options=TelemetryOptions(**providers),
        metrics=metrics,
        spans=spans.get_finished_spans,
        named=lambda name: [s for s in spans.get_finished_spans() if s.name == name],
        claims=lambda: [s for s in spans.get_finished_spans() if s.name.startswith("claim ")],
        events=lambda: [entry.log_record for entry in logs.get_finished_logs()],
    )
    tracer_provider.shutdown()
    logger_provider.shutdown()
    providers["meter_provider"].shutdown()


def in_run(run, case=None):
    """An evaluated case of a run."""
    case = case or RAGTestCase(query="q", response="r")
    return case.model_copy(update={"run": run})


@pytest.fixture
def emit(sdk, run, results):
    """Emits an evaluation through the private providers, and gives what they have got."""

    def emit(content=None, run=run, results=results, case=None, times=1, **options):
        emitter = Emitter(content, TelemetryOptions(**{**sdk.providers, **options}))
        for _ in range(times):
            evaluated = in_run(run, case)
            with emitter.evaluation(evaluated, lag=1.5) as emission:
                emission.emit(results, evaluated)
        return sdk

    return emit


@pytest.fixture
def target():
    return SpanTarget(trace_id="a" * 32, span_id="b" * 16, source="openinference")


@pytest.fixture
def judged():
    """What the results are about."""
    chunk = ContextChunk(text=f"{SECRET} lies far away.", id="doc-1", metadata={"source": SECRET})
    return RAGTestCase(query="Is it?", context=[chunk], response=SECRET, metadata={"user": SECRET})


@pytest.fixture
def run(target):
    return RunInfo(
        run_id="run-1",
        pipeline="support",
        framework="langchain",
        target=target,
        sampling_probability=0.25,
        session_id="s-1",
        response_id="msg-1",
        model="small-1",
    )


def claim(verdict="SUPPORTED", **fields):
    return ClaimDetail(
        claim=f"{SECRET} is far.",
        verdict=verdict,
        evidence=f"{SECRET} lies far away.",
        reason=f"It says {SECRET}.",
        confidence=0.9,
        support_source="earlier_turn",
        supporting_chunk_ids=("doc-1", 2),
        answer_span=(0, 16),
        evidence_verified=True,
        decided_by="claude",
        **fields,
    )


@pytest.fixture
def results():
    claims = (claim(), claim("CONTRADICTED"), claim(None))
    made_by = {"judge": "claude", "model": "claude-x", "judge_kind": "llm", "fingerprint": "0a1b"}
    shared = {"claims": claims, "duration": 0.5, **made_by}
    return {
        "faithfulness": EvaluationResult(
            evaluator_name="faithfulness",
            score=0.5,
            passed=False,
            status=Status.PARTIAL,
            threshold=0.7,
            reasoning=f"1 of 2, {SECRET}.",
            **shared,
        ),
        "hallucination": EvaluationResult(
            evaluator_name="hallucination",
            score=0.5,
            passed=False,
            status=Status.PARTIAL,
            threshold=0.8,
            reasoning="Found 1.",
            **shared,
        ),
        "relevance": EvaluationResult(
            evaluator_name="relevance",
            score=None,
            passed=None,
            status=Status.JUDGE_TIMEOUT,
            error=f"no answer about {SECRET}",
            error_type="JudgeTimeoutError",
            threshold=0.7,
            **made_by,
        ),
    }


@pytest.fixture
def secret_case():
    return RAGTestCase(
        query=f"Where is {SECRET}?",
        context=[f"{SECRET} lies far away."],
        response=f"{SECRET} lies far away. {SECRET} has nine towers.",
    )

import asyncio
import os
import threading
import time

import pytest

import products_receivers
from ragaliq import (
    ClaimDetail,
    Evaluation,
    EvaluationResult,
    RAGTestCase,
    RunInfo,
    SinkError,
    SpanTarget,
)
from ragaliq.core.results import EvidenceSpan, JudgeUsage, Status
from ragaliq.records import evaluation_record
from ragaliq.telemetry.content import ContentPolicy

QUERY = "Zebra question?"
ANSWER = "The zebra is striped. It flies."
CHUNK = "A zebra is a striped animal."


@pytest.fixture
def captured():
    return ContentPolicy(on_spans=True, on_events=True)


@pytest.fixture
def case():
    return RAGTestCase(id="case-1", query=QUERY, context=[CHUNK], response=ANSWER, tags=["t"])


NOTHING = ContentPolicy()


def claims():
    return (
        ClaimDetail(
            claim="The zebra is striped.",
            verdict="SUPPORTED",
            evidence="striped animal",
            confidence=0.9,
            reason="The zebra chunk says so.",
            supporting_chunk_ids=(0,),
            answer_span=(0, 21),
            evidence_spans=(EvidenceSpan(0, 13, 27),),
            evidence_verified=True,
            decided_by="scripted",
        ),
        ClaimDetail(claim="It flies.", verdict="CONTRADICTED", answer_span=(22, 31)),
    )


def result_of(score=0.5, *, name="faithfulness", status=Status.SCORED, **fields):
    return EvaluationResult(
        evaluator_name=name,
        score=score,
        passed=None if score is None else score >= 0.7,
        status=status,
        threshold=0.7,
        judge="scripted",
        reasoning="One zebra claim is wrong.",
        usage=JudgeUsage(input_tokens=10, output_tokens=2, requests=1, cost_usd=0.001),
        duration=0.1,
        claims=claims() if score is not None else (),
        **fields,
    )


@pytest.fixture(name="result_of")
def result_of_fixture():
    return result_of


def run_of(number=0, **fields):
    return RunInfo(
        **{
            "run_id": f"run-{number}",
            "pipeline": "zoo",
            "ended_at": 1_700_000_000.0 + number,
            "target": SpanTarget(trace_id=f"{number + 1:032x}", span_id=f"{number + 1:016x}"),
            **fields,
        }
    )


@pytest.fixture(name="run_of")
def run_of_fixture():
    return run_of


@pytest.fixture
def record_of(case):
    def build(number=0, results=None, *, content=NOTHING, created_at=None, **run):
        results = [result_of()] if results is None else results
        evaluation = Evaluation(
            case=case.model_copy(update={"run": run_of(number, **run)}),
            results={result.evaluator_name: result for result in results},
            lag=0.25,
        )
        record = evaluation_record(evaluation, content=content)
        return record.model_copy(update={"created_at": created_at or 1_700_000_000.0 + number})

    return build


class ListSink:
    """Keeps what it gets; fails as it is told, one entry a call."""

    def __init__(self, *failures, name="list"):
        self.name = name
        self.failures = list(failures)
        self.calls = []
        self.kept = {}
        self.closed = 0

    async def write(self, records):
        self.calls.append([record.evaluation_id for record in records])
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, threading.Event):  # the test's own thread sets it
            while not failure.is_set():  # noqa: ASYNC110 - it belongs to no event loop
                await asyncio.sleep(0.001)
            failure = None
        refused = records
        if isinstance(failure, SinkError) and failure.undelivered is not None:
            refused = failure.undelivered
        elif failure is None:
            refused = []
        self.kept.update({r.evaluation_id: r for r in records if r not in refused})
        if isinstance(failure, BaseException):
            raise failure

    async def aclose(self):
        self.closed += 1


@pytest.fixture
def list_sink():
    return ListSink


def until(condition, timeout=10.0):
    """Wait for another thread or process; the condition is what the test is about."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


@pytest.fixture(name="until")
def until_fixture():
    return until


@pytest.fixture(autouse=True)
def no_products_in_the_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("PHOENIX_", "LANGFUSE_", "MLFLOW_")):
            monkeypatch.delenv(name)


@pytest.fixture
def receiver_of():
    """Starts loopback receivers by name and stops them after the test."""
    started = []

    def start(name, **options):
        started.append(getattr(products_receivers, f"{name}Receiver")(**options))
        started[-1].Fault = products_receivers.Fault
        return started[-1]

    yield start
    for receiver in started:
        receiver.stop()

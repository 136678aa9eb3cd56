"""A real MLflow server: spans by OTLP, verdicts by the sink, read back by REST."""

import asyncio
import base64

import pytest
from application import (
    ANSWERS,
    answer_all,
    answer_unwatched,
    eventually,
    failed,
    fetch,
    ragaliq,
    tracing,
    try_it,
)
from servers import installed, serving

from free_ports import free_port
from ragaliq import MLflowSink
from ragaliq.datasets import read_labelled_claims

pytestmark = pytest.mark.backends


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [installed("mlflow", "bin", "mlflow"), "server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    environment = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    with serving(command, f"{url}/health", folder, environment):
        yield url


@pytest.fixture(scope="module")
def experiment(mlflow):
    return fetch(f"{mlflow}/api/2.0/mlflow/experiments/create", {"name": "shop"})["experiment_id"]


@pytest.fixture(scope="module")
def records(mlflow, experiment):
    """What the sinks were given for a chain whose spans and verdicts MLflow now has."""
    headers = {"x-mlflow-experiment-id": experiment}
    with tracing(mlflow, {"service.name": "shop"}, headers) as provider:
        return answer_all(provider, MLflowSink(mlflow))


def trace(mlflow, record):
    identifier = f"tr-{record.run.target.trace_id}"
    return fetch(f"{mlflow}/api/3.0/mlflow/traces/{identifier}")["trace"]["trace_info"]


def links(mlflow, experiment):
    """Trace and span ids that the evaluations' own traces are linked to."""
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}
    found = fetch(f"{mlflow}/api/3.0/mlflow/traces/search", {"locations": [place]})["traces"]
    traces = [
        fetch(f"{mlflow}/api/3.0/mlflow/traces/get?trace_id={each['trace_id']}")["trace"]
        for each in found
    ]
    linked = [link for trace in traces for span in trace["spans"] for link in span.get("links", ())]
    return {(plain_id(link["trace_id"]), plain_id(link["span_id"])) for link in linked}


def plain_id(encoded):
    return base64.b64decode(encoded).hex()


def send(mlflow, *records, times=1):
    async def all_of_them():
        sink = MLflowSink(mlflow)
        for _ in range(times):
            await sink.write(records)
        await sink.aclose()

    asyncio.run(all_of_them())


def test_each_verdict_is_feedback_on_the_trace_of_the_chain_it_is_about(mlflow, records):
    for record in records:
        info = trace(mlflow, record)
        assert info["request_preview"] == f'"{record.case.query}"'
        assert info["response_preview"] == f'"{ANSWERS[record.case.query]}"'
        found = {each["metadata"]["ragaliq.metric_id"]: each for each in info["assessments"]}
        assert found.keys() == set(map(record.metric_id, record.results))
        for name, metric in record.results.items():
            feedback = found[record.metric_id(name)]
            assert feedback["assessment_name"] == name
            assert feedback["feedback"] == {"value": pytest.approx(metric.score)}
            assert feedback["rationale"] == metric.reasoning
            assert feedback["source"] == {"source_type": "CODE", "source_id": "local"}


def test_what_is_sent_again_is_there_once(mlflow, records):
    before = [trace(mlflow, record)["assessments"] for record in records]
    send(mlflow, *records, times=2)
    assert [trace(mlflow, record)["assessments"] for record in records] == before


def test_the_evaluation_itself_is_a_trace_linked_to_the_span_it_is_about(
    mlflow, experiment, records
):
    targets = {(record.run.target.trace_id, record.run.target.span_id) for record in records}
    assert eventually(lambda: links(mlflow, experiment), lambda found: found == targets)


def test_a_failed_evaluation_is_an_error_and_no_value(mlflow, records):
    record = failed(records[0])
    send(mlflow, record, times=2)
    (feedback,) = [
        each
        for each in trace(mlflow, record)["assessments"]
        if each["metadata"]["ragaliq.metric_id"] == record.metric_id("timed_out")
    ]
    assert feedback["feedback"].get("value") is None
    assert feedback["feedback"]["error"]["error_code"] == "JUDGE_TIMEOUT"


def test_the_example_ends_with_verdicts_in_mlflow(mlflow):
    said = try_it("mlflow", {"MLFLOW_TRACKING_URI": mlflow})
    assert "mlflow: 2 written, 0 failed" in said


def test_runs_that_are_there_are_scored_once_and_peoples_feedback_read_as_labels(mlflow, tmp_path):
    made = fetch(f"{mlflow}/api/2.0/mlflow/experiments/create", {"name": "archive/2026"})
    archive = made["experiment_id"]
    with tracing(mlflow, {}, {"x-mlflow-experiment-id": archive}) as provider:
        answer_unwatched(provider)
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": archive}}

    def traces():
        return fetch(f"{mlflow}/api/3.0/mlflow/traces/search", {"locations": [place]})["traces"]

    eventually(traces, lambda found: len(found) == len(ANSWERS))
    address, environment = "mlflow://archive%2F2026", {"MLFLOW_TRACKING_URI": mlflow}
    assert "sink mlflow: 2 written" in ragaliq("evaluate", address, environment=environment)
    scores = [
        each["feedback"]["value"]
        for trace in traces()
        for each in trace["assessments"]
        if each["assessment_name"] == "faithfulness"
    ]
    assert sorted(scores) == [pytest.approx(2 / 3), 1.0]
    said = ragaliq("evaluate", address, environment=environment)
    assert "no run without a score; 2 have one" in said

    for trace in traces():
        opinion = {
            "assessment_name": "faithfulness",
            "trace_id": trace["trace_id"],
            "source": {"source_type": "HUMAN", "source_id": "ana"},
            "create_time": "2026-11-22T12:00:00Z",
            "last_update_time": "2026-11-22T12:00:00Z",
            "feedback": {"value": "open" in trace["request_preview"]},
            "valid": True,
        }
        url = f"{mlflow}/api/3.0/mlflow/traces/{trace['trace_id']}/assessments"
        fetch(url, {"assessment": opinion})
    labels = tmp_path / "labels.jsonl"
    ragaliq("label", address, "-o", str(labels), environment=environment)
    assert {label.claim: label.is_supported for label in read_labelled_claims(labels)} == {
        answer: "open" in question for question, answer in ANSWERS.items()
    }

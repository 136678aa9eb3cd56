"""What the sinks for products send, and what becomes of it when the product is in trouble."""

import asyncio
import base64
import socket
import sys
from uuid import UUID

import pytest

from ragaliq import ConfigurationError, SinkError
from ragaliq.core.results import Status
from ragaliq.records.langfuse import LangfuseSink
from ragaliq.records.langsmith import LangSmithSink
from ragaliq.records.mlflow import MLflowSink
from ragaliq.records.phoenix import PhoenixSink
from ragaliq.records.sinks import SinkLimits, SinkWorker

KEY = "sk-very-secret"
PRODUCTS = ["Phoenix", "Langfuse", "MLflow", "LangSmith"]


def sink_for(product, url):
    if product == "Phoenix":
        return PhoenixSink(url, api_key=KEY)
    if product == "Langfuse":
        return LangfuseSink(url, public_key="pk", secret_key=KEY)
    if product == "LangSmith":
        return LangSmithSink(url, api_key=KEY)
    return MLflowSink(url, token=KEY)


@pytest.fixture
def record_of(record_of):
    """Records of runs with ids as LangChain's."""

    def build(number=0, *arguments, **fields):
        run_id = str(UUID(int=number + 1))
        return record_of(number, *arguments, **{"run_id": run_id, **fields})

    return build


def send(sink, *records):
    async def both():
        try:
            await sink.write(records)
        finally:
            await sink.aclose()

    asyncio.run(both())


def kept(receiver):
    if hasattr(receiver, "traces"):
        return [a for assessments in receiver.traces.values() for a in assessments]
    return list(receiver.kept.values())


@pytest.fixture(params=PRODUCTS)
def product(request):
    return request.param


@pytest.fixture
def receiver(receiver_of, product, record_of):
    receiver = receiver_of(product)
    if product == "MLflow":
        for number in range(5):
            receiver.traces[f"tr-{record_of(number).run.target.trace_id}"] = []
    return receiver


# --- what holds for all ---------------------------------------------------------------------


def test_every_metric_of_every_record_arrives_once_however_often_it_is_sent(
    product, receiver, record_of, result_of
):
    results = [result_of(), result_of(1.0, name="relevance")]
    records = [record_of(number, results) for number in range(3)]
    sink = sink_for(product, receiver.url)
    send(sink, *records)
    send(sink, *records)
    assert len(kept(receiver)) == 6


@pytest.mark.parametrize("failure_first", [True, False])
def test_a_failure_never_takes_the_place_of_a_score_whichever_is_sent_first(
    product, receiver, record_of, result_of, failure_first
):
    scored = record_of()
    failed = record_of(results=[result_of(None, status=Status.JUDGE_ERROR, error_type="E")])
    assert scored.evaluation_id == failed.evaluation_id
    sink = sink_for(product, receiver.url)
    for record in (failed, scored, failed) if failure_first else (scored, failed, scored):
        send(sink, record)
    assert [score for score in map(score_in, kept(receiver)) if score is not None] == [0.5]


def score_in(entry):
    value = (entry.get("result") or entry.get("feedback") or entry).get
    found = value("score", value("value"))
    return found if isinstance(found, float) else None


def test_no_text_is_sent_without_content_capture(product, receiver, record_of, captured):
    send(sink_for(product, receiver.url), record_of())
    assert "zebra" not in str(receiver.requests).lower()
    send(sink_for(product, receiver.url), record_of(1, content=captured))
    assert "One zebra claim is wrong." in str(receiver.requests)


def test_a_run_that_has_no_place_there_is_passed_over_counted_and_warned_of_once(
    product, receiver, record_of, caplog
):
    if product == "LangSmith":
        homeless = [record_of(number, run_id=f"not a uuid {number}") for number in range(2)]
    else:
        homeless = [record_of(number, target=None) for number in range(2)]
    failures = []
    sink = sink_for(product, receiver.url)
    worker = SinkWorker(sink, on_error=lambda *how: failures.append(how))
    outcomes = [worker.put(record).result(5.0) for record in homeless]
    assert worker.put(record_of(3)).result(30.0) == "written"
    assert outcomes == ["passed_over"] * 2
    stats = worker.stats()
    assert (stats.records, stats.written, stats.passed_over, stats.pending) == (3, 1, 2, 0)
    assert failures == [(sink.name, "passed_over")] * 2
    (warning,) = caplog.messages
    assert ("uuid" if product == "LangSmith" else "span") in warning.lower()
    assert ("MLFLOW_USE_DEFAULT_TRACER_PROVIDER" in warning) == (product == "MLflow")
    send(sink_for(product, receiver.url), *homeless)
    assert len(kept(receiver)) == 1
    assert worker.close(5.0)


def test_the_key_is_sent_and_shown_nowhere(product, receiver, record_of):
    sink = sink_for(product, receiver.url)
    send(sink, record_of())
    (_, _, headers, _), *_ = receiver.requests
    header, expected = "authorization", f"Bearer {KEY}"
    if product == "LangSmith":
        header, expected = "x-api-key", KEY
    if product == "Langfuse":
        expected = f"Basic {base64.b64encode(f'pk:{KEY}'.encode()).decode()}"
    assert headers[header] == expected
    assert KEY not in repr(sink)
    receiver.faults = [receiver.Fault(401)]
    with pytest.raises(SinkError) as caught:
        send(sink, record_of())
    assert KEY not in str(caught.value)


def refused(product, receiver, record, fault):
    receiver.faults = [fault]
    with pytest.raises(SinkError) as caught:
        send(sink_for(product, receiver.url), record)
    # What the server says may quote what it got.
    assert "zebra" not in str(caught.value)
    return caught.value


def test_what_passes_is_told_from_what_does_not_and_the_wait_that_is_asked_for_is_kept(
    product, receiver, record_of
):
    for status, permanent in ((500, False), (429, False), (404, False), (401, True), (403, True)):
        error = refused(product, receiver, record_of(), receiver.Fault(status))
        assert (error.kind, error.permanent) == (f"http_{status}", permanent)
    for value, least, most in (
        ("7", 7.0, 7.0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 10_000, float("inf")),
    ):
        fault = receiver.Fault(429, {"retry-after": value})
        assert least <= refused(product, receiver, record_of(), fault).retry_after <= most
    soon = receiver.Fault(429, {"retry-after": "soon"})
    assert refused(product, receiver, record_of(), soon).retry_after is None


def test_a_server_that_is_not_there_is_a_failure_that_may_pass(product, record_of):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(SinkError) as caught:
        send(sink_for(product, url), record_of())
    assert (caught.value.kind, caught.value.permanent) == ("unreachable", False)


@pytest.mark.parametrize("proxy", ["socks5://user:SECRET@proxy:1080", "socks://proxy:1080"])
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(
    product, record_of, monkeypatch, proxy
):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ConfigurationError, match="ALL_PROXY") as caught:
        send(sink_for(product, "http://127.0.0.1:9"), record_of(1))
    assert "SECRET" not in str(caught.value)


def test_faults_of_all_kinds_pass_and_leave_each_score_once(product, receiver, record_of):
    fault = receiver.Fault
    receiver.faults = [fault(500), fault(429, {"retry-after": "0"}), fault(), fault(503)]
    limits = SinkLimits(timeout=0.4, backoff=0.001, max_backoff=0.01, attempts=20)
    worker = SinkWorker(sink_for(product, receiver.url), limits)
    for number in range(3):
        worker.put(record_of(number))
    assert worker.flush(60.0)
    stats = worker.stats()
    assert (stats.written, stats.failed) == (3, 0)
    assert {"http_500", "http_429", "TimeoutError", "http_503"} == set(stats.errors)
    assert len(kept(receiver)) == 3
    assert worker.close(5.0)


@pytest.mark.parametrize("address", ["localhost:6006", "ftp://host", "http://u:p@host"])
def test_a_wrong_address_is_refused_when_the_sink_is_made(product, address):
    with pytest.raises(ConfigurationError) as caught:
        sink_for(product, address)
    assert "u:p" not in str(caught.value)


# --- one by one -----------------------------------------------------------------------------


def test_phoenix_gets_the_score_its_label_and_facts_and_of_a_failure_the_label_alone(
    receiver_of, record_of, result_of
):
    receiver = receiver_of("Phoenix")
    record = record_of()
    send(PhoenixSink(f"{receiver.url}/v1/traces"), record)
    (annotation,) = kept(receiver)
    assert annotation.pop("metadata")["ragaliq.claims.contradicted"] == 1
    assert annotation == {
        "span_id": record.run.target.span_id,
        "name": "faithfulness",
        "annotator_kind": "CODE",
        "identifier": record.metric_id("faithfulness"),
        "result": {"score": 0.5, "label": "fail", "explanation": "1 of 2 claims supported"},
    }
    send(PhoenixSink(receiver.url), record_of(1, results=[failed(result_of)]))
    assert kept(receiver)[1]["result"] == {"label": "judge_timeout"}


def failed(result_of):
    return result_of(None, status=Status.JUDGE_TIMEOUT, error_type="JudgeTimeoutError")


def test_langfuse_gets_a_score_on_the_observation_and_a_failure_as_a_category_of_another_name(
    receiver_of, record_of, result_of
):
    receiver = receiver_of("Langfuse")
    sink = LangfuseSink(receiver.url, public_key="pk", secret_key=KEY)
    record = record_of()
    send(sink, record)
    (score,) = kept(receiver)
    assert score.pop("metadata")["ragaliq.run_id"] == str(UUID(int=1))
    assert score == {
        "id": record.metric_id("faithfulness"),
        "traceId": record.run.target.trace_id,
        "observationId": record.run.target.span_id,
        "name": "faithfulness",
        "value": 0.5,
        "dataType": "NUMERIC",
        "comment": "1 of 2 claims supported",
        "timestamp": "2023-11-14T22:13:20+00:00",
    }
    send(sink, record_of(1, results=[failed(result_of)]))
    _, score = kept(receiver)
    assert (score["name"], score["value"]) == ("faithfulness_status", "judge_timeout")
    assert score["dataType"] == "CATEGORICAL"


def test_a_langfuse_server_that_takes_no_lists_gets_one_score_at_a_time(receiver_of, record_of):
    receiver = receiver_of("Langfuse", lists=False)
    sink = LangfuseSink(receiver.url, public_key="pk", secret_key=KEY)
    send(sink, record_of(1), record_of(2))
    assert len(kept(receiver)) == 2


def test_scores_of_one_record_that_are_too_large_together_go_one_at_a_time(
    receiver_of, record_of, result_of
):
    receiver = receiver_of("Langfuse")
    receiver.faults = [receiver.Fault(413)]
    send(sink_for("Langfuse", receiver.url), record_of(1, [result_of(), result_of(name="f")]))
    assert len(kept(receiver)) == 2


def test_mlflow_gets_feedback_on_the_trace(receiver_of, record_of, result_of):
    receiver = receiver_of("MLflow")
    record = record_of(
        results=[result_of(), failed(result_of).model_copy(update={"evaluator_name": "f"})]
    )
    receiver.traces[f"tr-{record.run.target.trace_id}"] = []
    send(MLflowSink(receiver.url), record)
    good, bad = kept(receiver)
    assert good["metadata"]["ragaliq.metric_id"] == record.metric_id("faithfulness")
    assert all(isinstance(value, str) for value in good["metadata"].values())
    assert (good["assessment_name"], good["feedback"]) == ("faithfulness", {"value": 0.5})
    assert good["source"] == {"source_type": "CODE", "source_id": "scripted"}
    assert bad["feedback"] == {"value": None, "error": {"error_code": "JUDGE_TIMEOUT"}}


def test_a_trace_mlflow_does_not_know_yet_is_tried_again_and_delays_no_other(
    receiver_of, record_of
):
    receiver = receiver_of("MLflow")
    records = [record_of(number) for number in range(3)]
    receiver.traces = {f"tr-{record.run.target.trace_id}": [] for record in records[1:]}
    with pytest.raises(SinkError) as caught:
        send(MLflowSink(receiver.url), *records)
    assert (caught.value.permanent, caught.value.undelivered) == (False, records[:1])
    assert len(kept(receiver)) == 2


@pytest.mark.parametrize("product", ["Phoenix", "Langfuse"])
def test_one_record_that_is_refused_does_not_keep_the_others_out(
    product, receiver_of, record_of, result_of
):
    receiver = receiver_of(product)
    records = [record_of(1), record_of(2, [result_of(name="unwelcome")]), record_of(3)]
    with pytest.raises(SinkError) as caught:
        send(sink_for(product, receiver.url), *records)
    assert (caught.value.permanent, caught.value.undelivered) == (True, records[1:2])
    assert len(kept(receiver)) == 2


@pytest.mark.parametrize("status", [404, 409])
@pytest.mark.parametrize("product", ["Phoenix", "Langfuse"])
def test_a_batch_that_is_refused_for_no_record_of_it_is_not_sent_record_by_record(
    product, status, receiver_of, record_of
):
    receiver = receiver_of(product)
    receiver.faults = [receiver.Fault(status)]
    with pytest.raises(SinkError, match=str(status)):
        send(sink_for(product, receiver.url), *map(record_of, range(3)))
    assert len(receiver.requests) == 1


def test_addresses_and_keys_come_from_each_products_own_variables(monkeypatch):
    with pytest.raises(ConfigurationError, match="LANGFUSE_SECRET_KEY"):
        LangfuseSink()
    with pytest.raises(ConfigurationError, match="MLFLOW_TRACKING_URI"):
        MLflowSink()
    with pytest.raises(ConfigurationError, match="LANGSMITH_API_KEY"):
        LangSmithSink()
    assert repr(PhoenixSink()) == "PhoenixSink('http://localhost:6006')"
    for name, value in {
        "PHOENIX_COLLECTOR_ENDPOINT": "http://phoenix:6006/",
        "LANGFUSE_HOST": "https://langfuse.example",
        "LANGFUSE_PUBLIC_KEY": "pk",
        "LANGFUSE_SECRET_KEY": KEY,
        "MLFLOW_TRACKING_URI": "http://mlflow:5000",
        "LANGSMITH_API_KEY": KEY,
    }.items():
        monkeypatch.setenv(name, value)
    assert repr(PhoenixSink()) == "PhoenixSink('http://phoenix:6006')"
    assert repr(LangfuseSink()) == "LangfuseSink('https://langfuse.example')"
    assert repr(MLflowSink()) == "MLflowSink('http://mlflow:5000')"
    assert repr(LangSmithSink()) == "LangSmithSink('https://api.smith.langchain.com')"

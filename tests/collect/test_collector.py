"""What a collector makes of the spans that are sent to it."""

import asyncio
import errno
import gzip
import json
import random
import threading
import time
from functools import partialmethod
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from otlp import document
from recorded_spans import recorded, request_with_a_chain
from spans import ANSWER, QUESTION, TEXTS
from test_recordings import CONTEXTS, RECORDINGS

from ragaliq import Monitor
from ragaliq.datasets import read_cases
from ragaliq.live.sampler import position
from ragaliq.records.sinks import SinkLimits
from ragaliq.testing import ScriptedJudge
from ragaliq.traces import RagaliqSpanProcessor


def search_then_agent(app):
    with app.request():
        app.retrieve()
        with app.span("agent", kind="AGENT", asked=QUESTION) as root:
            app.answer()
            app.say(root, output=ANSWER)


def steps_of_a_request(app):
    with app.request():
        app.retrieve()
        app.answer()


def request_without_a_model(app):
    with app.request(), app.span("SELECT"):
        pass


def parts(case):
    return case.query, case.context_texts, case.response


@pytest.mark.parametrize("act", [request_with_a_chain, search_then_agent, steps_of_a_request])
def test_a_run_comes_out_the_same_through_processor_file_and_collector(act, collecting, tmp_path):
    live = []
    monitor = Monitor(judge=ScriptedJudge(), on_result=live.append)
    spans = recorded(act, processors=[RagaliqSpanProcessor(monitor)])
    assert monitor.close(20)
    (path := tmp_path / "traces.json").write_text(json.dumps(document(spans)))
    (in_file,) = read_cases(path)
    each = collecting()
    each.send(spans)
    (collected,) = each.cases()
    assert parts(collected) == parts(live[0].case) == parts(in_file) == (QUESTION, TEXTS, ANSWER)
    assert collected.sources == live[0].case.sources == in_file.sources
    assert each.results[0].target == live[0].target


def test_a_run_has_the_release_of_the_application_that_sent_it(collecting):
    path = RECORDINGS / "mastra-agent.otlp.json.gz"
    each = collecting()
    each.client.post(
        "/v1/traces",
        content=path.read_bytes(),
        headers={"content-type": "application/json", "content-encoding": "gzip"},
    )
    each.cases(2)
    assert [result.run.release for result in each.results] == ["1.71.0"] * 2
    (first, _) = read_cases(path)
    assert first.run.release == "1.71.0"


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_recording_comes_out_the_same_as_from_its_file(name, collecting):
    path = RECORDINGS / f"{name}.otlp.json.gz"
    expected = [parts(case) for case in read_cases(path)]
    each = collecting()
    data = gzip.decompress(path.read_bytes())
    for body in data.splitlines() if data[:1] == b"{" else [data]:
        kind = "application/json" if data[:1] == b"{" else "application/x-protobuf"
        answered = each.client.post("/v1/traces", content=body, headers={"content-type": kind})
        assert answered.status_code == 200, answered.text
    assert sorted(map(parts, each.cases(len(expected)))) == sorted(expected)


def test_spans_come_in_any_order_and_in_several_batches(collecting):
    spans = [span for _ in range(5) for span in recorded(request_with_a_chain)]
    random.Random(1).shuffle(spans)
    each = collecting(grace=1.0, quiet=2.0)
    for span in spans:
        assert each.send([span], packed=True).status_code == 200
    assert len(each.cases(5)) == 5
    assert each.monitor.stats().outcomes == {"evaluated": 5}
    assert (len(each.assembly), each.assembly.size) == (0, 0)


def test_a_trace_whose_first_span_never_comes_is_read_when_it_is_quiet(collecting):
    each = collecting()
    each.send(recorded(request_with_a_chain)[:-1])
    (case,) = each.cases()
    assert parts(case) == (QUESTION, TEXTS, ANSWER)


def test_sampling_goes_by_the_trace_and_what_is_not_chosen_is_counted_and_not_kept(collecting):
    each = collecting(sample_rate=0.3)
    traces = [recorded(request_with_a_chain) for _ in range(40)]
    chosen = [t for t in traces if position(f"{t[0].context.trace_id:032x}") < 0.3]
    for spans in traces:
        each.send(spans)
    each.cases(len(chosen))
    outcomes = each.monitor.stats().outcomes
    assert outcomes["evaluated"] == len(chosen) > 0
    assert outcomes["sampled_out"] == 40 - len(chosen)
    assert all(result.run.sampling_probability == 0.3 for result in each.results)
    assert each.assembly.counts["kept"] == sum(map(len, chosen))


def test_what_is_no_language_model_work_is_neither_scored_nor_counted(collecting):
    each = collecting()
    each.send(recorded(request_without_a_model))
    each.send(recorded(request_with_a_chain))
    assert len(each.cases()) == 1
    assert each.monitor.stats().started == 1


def test_evaluations_that_come_back_are_left_alone(collecting):
    def evaluation(app):
        tracer = app.provider.get_tracer("ragaliq")
        with tracer.start_as_current_span("evaluation rag"):
            app.answer()

    each = collecting()
    each.send(recorded(evaluation))
    each.send(recorded(request_with_a_chain))
    assert len(each.cases()) == 1
    assert each.monitor.stats().started == 1


def test_traces_that_are_too_many_or_too_large_are_given_up_and_counted(collecting):
    each = collecting(max_traces=2, quiet=60.0)
    for _ in range(5):
        each.send(recorded(request_with_a_chain)[:-1])
    assert each.assembly.counts["evicted"] == 3
    assert each.monitor.stats().incomplete == {"evicted": 3}
    small = collecting(max_bytes=20_000, quiet=60.0)
    for _ in range(20):
        small.send(recorded(request_with_a_chain)[:-1])
    assert small.assembly.size <= 20_000
    assert small.assembly.counts["evicted"] > 10


def test_messages_that_are_logged_belong_to_their_span(collecting):
    def act(app):
        with app.request():
            app.retrieve()
            with app.span("chat", **{"gen_ai.operation.name": "chat"}):
                pass

    spans = recorded(act)
    model = next(span for span in spans if span.name == "chat")
    logs = ExportLogsServiceRequest()
    records = logs.resource_logs.add().scope_logs.add().log_records
    for name, held in (
        ("gen_ai.user.message", {"content": QUESTION}),
        ("gen_ai.choice", {"message": json.dumps({"role": "assistant", "content": ANSWER})}),
    ):
        record = records.add(event_name=name)
        record.trace_id = model.context.trace_id.to_bytes(16)
        record.span_id = model.context.span_id.to_bytes(8)
        for key, text in held.items():
            record.body.kvlist_value.values.add(key=key).value.string_value = text
    each = collecting(grace=0.5)
    each.send(logs.SerializeToString(), path="/v1/logs")
    each.send(spans)
    (case,) = each.cases()
    assert parts(case) == (QUESTION, TEXTS, ANSWER)


def test_a_part_that_cannot_be_read_is_rejected_and_said(collecting):
    request = document(recorded(request_with_a_chain))
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = "no"
    each = collecting()
    answered = each.client.post("/v1/traces", json=request)
    assert answered.status_code == 200
    assert answered.json()["partialSuccess"]["rejectedSpans"] == "1"
    request = ExportTraceServiceResponse.FromString(each.send([]).content)
    assert request.partial_success.rejected_spans == 0


@pytest.mark.parametrize(
    ("code", "content", "headers"),
    [
        (415, b"", {"content-type": "text/plain"}),
        (415, b"", {"content-type": "application/json", "content-encoding": "br"}),
        (400, b"[]", {"content-type": "application/json"}),
        (400, b"{", {"content-type": "application/json"}),
        (400, b"\xff\xff\xff", {"content-type": "application/x-protobuf"}),
        (400, b"{}", {"content-type": "application/json", "content-encoding": "gzip"}),
        (413, b"x" * 200_001, {"content-type": "application/json"}),
    ],
)
def test_what_is_no_export_request_is_refused(collecting, code, content, headers):
    each = collecting(server={"max_request_bytes": 200_000})
    assert each.client.post("/v1/traces", content=content, headers=headers).status_code == code


def test_what_unpacks_to_too_much_is_refused(collecting):
    each = collecting(server={"max_request_bytes": 200_000})
    assert each.send(b"\n" * 5_000_000, packed=True).status_code == 400


def test_health_and_counts(collecting):
    each = collecting()
    each.send(recorded(request_with_a_chain))
    each.cases()
    assert each.client.get("/healthz").text == "ok\n"
    told = each.client.get("/metrics").text
    assert 'ragaliq_runs_total{outcome="evaluated"} 1' in told
    assert 'ragaliq_collect_requests_total{code="200"} 1' in told
    assert 'ragaliq_evaluations_total{metric="faithfulness",status="scored"} 1' in told


def test_what_was_answered_and_not_settled_is_read_again_from_the_spool(collecting):
    first = collecting(spool=True, grace=60.0, quiet=60.0)
    assert first.send(recorded(request_with_a_chain)).status_code == 200
    assert first.send(recorded(search_then_agent), packed=True).status_code == 200
    assert first.results == []
    second = collecting(spool=True)  # as after `kill -9`: the first was not told to stop
    assert len(second.cases(2)) == 2
    third = collecting(spool=True)
    assert third.cases(1, timeout=1.0) == []


class SlowSink:
    """Stores nothing before it is told to."""

    name = "slow"

    def __init__(self):
        self.may_store = threading.Event()
        self.stored = 0

    async def write(self, records):
        await asyncio.to_thread(self.may_store.wait)
        self.stored += len(records)

    async def aclose(self):
        self.may_store.set()


def test_a_result_that_no_sink_has_stored_yet_is_scored_again_after_a_kill(collecting):
    first = collecting(spool=True, sinks=[SlowSink()])
    assert first.send(recorded(request_with_a_chain)).status_code == 200
    wait_for(first.results)
    second = collecting(spool=True, sinks=[sink := SlowSink()])  # as after `kill -9`
    wait_for(second.results)
    sink.may_store.set()
    assert second.monitor.flush(10)
    assert sink.stored == 1
    wait_for_settling(second.spool)
    third = collecting(spool=True)
    assert third.cases(1, timeout=1.0) == []


def test_a_result_that_a_sink_drops_when_it_closes_stays_in_the_spool(collecting):
    first = collecting(spool=True, sinks=[SlowSink()])
    assert first.send(recorded(request_with_a_chain)).status_code == 200
    wait_for(first.results)
    first.monitor.close(0.1)
    assert len(collecting(spool=True).cases(1)) == 1


def test_results_that_a_sink_drops_while_it_goes_on_do_not_fill_the_spool(collecting, monkeypatch):
    monkeypatch.setattr(SinkLimits, "__init__", partialmethod(SinkLimits.__init__, max_queue=1))
    each = collecting(spool=True, sinks=[sink := SlowSink()])
    for _ in range(5):
        assert each.send(recorded(request_with_a_chain)).status_code == 200
    wait_for(each.results, 5)
    assert each.monitor.stats().sinks["slow"].dropped == 4
    sink.may_store.set()
    wait_for_settling(each.spool)


def wait_for_settling(spool, timeout=20.0):
    """Wait: a sink's thread notes it some moments after the record is written."""
    deadline = time.monotonic() + timeout
    while any(spool._segments.values()):
        assert time.monotonic() < deadline, "it was not settled"
        time.sleep(0.02)


def wait_for(results, count=1, timeout=20.0):
    deadline = time.monotonic() + timeout
    while len(results) < count:
        assert time.monotonic() < deadline, "nothing was scored"
        time.sleep(0.02)


def test_a_full_spool_is_back_pressure(collecting):
    each = collecting(spool=True, grace=60.0)
    each.spool._max_bytes = 10
    spans = recorded(request_with_a_chain)
    assert each.send(spans).status_code == 200
    answered = each.send(spans)
    assert (answered.status_code, answered.headers["retry-after"]) == (429, "2")


def test_a_span_of_a_trace_that_was_read_before_a_kill_is_late(collecting):
    def with_a_query(app):
        with app.request():
            app.chain()
            with app.span("SELECT"):
                pass

    spans = recorded(with_a_query)
    (late,) = (span for span in spans if span.name == "SELECT")
    first = collecting(spool=True)
    assert first.send([span for span in spans if span is not late]).status_code == 200
    assert len(first.cases(1)) == 1
    wait_for_settling(first.spool)
    second = collecting(spool=True)
    assert second.send([late]).status_code == 200
    assert second.assembly.counts == {"late": 1}


def test_a_trace_given_up_within_the_request_that_brought_it_does_not_come_back(collecting):
    first = collecting(spool=True, max_spans=2)
    assert first.send(recorded(request_with_a_chain)).status_code == 200
    assert first.assembly.counts["evicted"] == 1
    assert collecting(spool=True).cases(1, timeout=1.5) == []


def test_more_traces_than_the_queue_takes_are_all_scored_after_a_kill(collecting):
    first = collecting(spool=True, grace=60.0)
    for _ in range(16):
        assert first.send(recorded(request_with_a_chain)).status_code == 200
    second = collecting(spool=True, max_queue=4)
    assert len(second.cases(16)) == 16
    assert second.monitor.stats().outcomes == {"evaluated": 16}


def test_whole_traces_that_the_queue_cannot_take_at_the_end_stay_in_the_spool(collecting):
    first = collecting(spool=True, grace=60.0, max_queue=4)
    for _ in range(16):
        assert first.send(recorded(request_with_a_chain)).status_code == 200
    first.client.__exit__(None, None, None)
    first.monitor.close(10)
    ended = first.monitor.stats().outcomes
    assert ended.keys() == {"evaluated"}
    left = 16 - ended["evaluated"]
    assert len(collecting(spool=True).cases(left)) == left


@pytest.fixture
def full_disk(monkeypatch):
    """Function that lets the disk be full for files of the spool with this suffix, or no more."""
    opened, full = Path.open, set()

    class Full:
        def __init__(self, file):
            self._file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._file.close()

        def write(self, data):
            self._file.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

    def open_(path, mode="r", *given, **named):
        file = opened(path, mode, *given, **named)
        return Full(file) if path.suffix in full and "a" in mode else file

    monkeypatch.setattr(Path, "open", open_)
    return lambda *suffixes: full.clear() or full.update(suffixes)


def test_a_request_that_a_full_disk_cut_short_is_to_be_sent_again_and_spoils_no_other(
    collecting, full_disk
):
    first = collecting(spool=True, grace=60.0)
    before, during, after = (recorded(request_with_a_chain) for _ in range(3))
    assert first.send(before).status_code == 200
    full_disk(".otlp")
    answered = first.send(during)
    assert (answered.status_code, answered.headers["retry-after"]) == (503, "2")
    full_disk()
    assert first.send(during).status_code == 200
    assert first.send(after).status_code == 200
    assert len(collecting(spool=True).cases(3)) == 3


def test_traces_are_read_also_while_a_full_disk_keeps_them_from_being_noted(collecting, full_disk):
    each = collecting(spool=True)
    full_disk(".done")
    assert each.send(recorded(request_without_a_model)).status_code == 200
    while len(each.assembly):  # settled on the thread that reads
        time.sleep(0.02)
    assert each.send(recorded(request_with_a_chain)).status_code == 200
    assert len(each.cases(1)) == 1


def test_a_segment_that_is_damaged_or_cut_short_costs_what_follows_in_it_alone(
    collecting, tmp_path, caplog
):
    first = collecting(spool=True, grace=60.0)
    assert first.send(recorded(request_with_a_chain)).status_code == 200
    with (tmp_path / "spool" / f"{1:020d}.otlp").open("ab") as segment:
        segment.write(b"\x00\x00")
    (tmp_path / "spool" / f"{7:020d}.otlp").write_bytes(b"\xff" * 40)
    assert len(collecting(spool=True).cases(1)) == 1
    assert [record.args[0] for record in caplog.records if "whole" in record.msg] == [2, 40]

"""Alarms: scores that move raise one, with event and gauge; a new judge raises none."""

import asyncio
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from typing import ClassVar

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

from ragaliq import Monitor, RAGTestCase, TelemetryOptions
from ragaliq.errors import ConfigurationError
from ragaliq.lab.alarm import QualityAlarm, QualityChange, Watch, Webhook
from ragaliq.lab.sequential import Shift
from ragaliq.records.store import StoredScore
from ragaliq.statistics import Estimate

DAY = 86_400.0
SCORE = StoredScore("", "shop", 0.0, "faithfulness", 0.0, 1.0, "judge", "a", "", True)


def traffic(*parts, per_day=100, seed=1):
    """Scores of parts: (how many, mean, fingerprint, release)."""
    random, number = Random(seed), 0
    for count, mean, fingerprint, release in parts:
        for _ in range(count):
            number += 1
            score = sum(random.random() < mean for _ in range(4)) / 4
            yield SCORE._replace(
                run_id=f"run-{number}",
                time=number * DAY / per_day,
                score=score,
                fingerprint=fingerprint,
                release=release,
            )


def alarms(scores, **settings):
    watch = Watch("shop", "faithfulness", **settings)
    return [change for change in map(watch.add, scores) if change]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(3000, 0.9, "a", "")], []),
        ([(1000, 0.9, "a", ""), (1000, 0.8, "a", "")], [("fell", "first 1,000 scores")]),
        ([(1000, 0.7, "a", ""), (1000, 0.85, "a", "")], [("rose", "first 1,000 scores")]),
        # A new judge is a new reference, however it scores.
        ([(1000, 0.9, "a", ""), (2500, 0.7, "b", "")], []),
        ([(600, 0.9, "a", "1.0"), (600, 0.75, "a", "1.1")], [("fell", "release 1.0")]),
        ([(600, 0.9, "a", "1.0"), (600, 0.9, "a", "1.1")], []),
        # Too few scores of the release before: the first thousand are the reference.
        ([(50, 0.9, "a", "1.0"), (600, 0.75, "a", "1.1")], []),
        # After an alarm the new level becomes the reference: no second one.
        ([(1000, 0.9, "a", ""), (4000, 0.8, "a", "")], [("fell", "first 1,000 scores")]),
    ],
)
def test_moves_raise_one_alarm_and_nothing_else_does(parts, expected):
    found = alarms(traffic(*parts))
    assert [(change.shift.direction, change.reference) for change in found] == expected
    for change in found:
        difference = change.shift.difference
        assert difference.low < difference.value < difference.high
        assert difference.low > 0 or difference.high < 0


def test_after_28_days_bets_begin_anew_and_a_later_fall_is_seen():
    found = alarms(traffic((4500, 0.9, "a", ""), (1000, 0.75, "a", "")))
    assert [change.shift.direction for change in found] == ["fell"]
    assert found[0].time > 45 * DAY


def telemetry():
    reader, logs = InMemoryMetricReader(), InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    options = TelemetryOptions(
        meter_provider=MeterProvider(metric_readers=[reader]), logger_provider=provider
    )

    def gauges():
        data = reader.get_metrics_data()
        return {
            metric.name: {
                point.attributes["ragaliq.pipeline.name"]: point.value
                for point in metric.data.data_points
            }
            for resource in (data.resource_metrics if data else [])
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name.startswith("ragaliq.quality")
        }

    return options, gauges, logs


@pytest.mark.parametrize(
    ("metric", "direction", "good_scores"),
    [("faithfulness", "fell", True), ("contradiction_rate", "rose", False)],
)
def test_a_monitor_with_an_alarm_emits_event_and_gauge(metric, direction, good_scores):
    options, gauges, logs = telemetry()
    heard = []
    alarm = QualityAlarm(reference=120, telemetry=options, on_alarm=heard.append)
    with Monitor(
        judge="local", metrics=[metric], sinks=[alarm], telemetry=TelemetryOptions.silent()
    ) as monitor:
        for number in range(300):
            is_right = number < 150 or number % 3 == 0
            case = RAGTestCase(
                query="When are you open?",
                context=["The shop is open from nine to five."],
                response="The shop is open from nine to five."
                if is_right
                else "The shop is open from one to two.",
            )
            monitor.submit(case, pipeline="hours", run_id=f"run-{number}")
    (change,) = heard
    assert (change.pipeline, change.metric, change.shift.direction) == ("hours", metric, direction)
    (event,) = logs.get_finished_logs()
    assert event.log_record.event_name == "ragaliq.quality.changed"
    assert event.log_record.severity_text == "WARN"
    attributes = dict(event.log_record.attributes)
    assert attributes.pop("ragaliq.evaluator.fingerprint")
    assert attributes.pop("ragaliq.quality.difference") == change.shift.difference.value
    assert attributes.pop("ragaliq.quality.difference.low") == change.shift.difference.low
    assert attributes.pop("ragaliq.quality.difference.high") == change.shift.difference.high
    assert attributes.pop("ragaliq.quality.now") == change.shift.now.value
    assert attributes.pop("ragaliq.quality.scores") == change.shift.now.n
    assert attributes == {
        "ragaliq.pipeline.name": "hours",
        "gen_ai.evaluation.name": metric,
        "ragaliq.higher_is_better": good_scores,
        "ragaliq.quality.direction": direction,
        "ragaliq.quality.reference": "first 120 scores",
    }
    assert gauges() == {"ragaliq.quality.changed": {"hours": change.shift.difference.value}}


def test_the_release_of_the_process_is_in_its_records(monkeypatch):
    seen = []
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop,service.version=4.2")
    case = RAGTestCase(query="Open?", context=["It is open."], response="It is open.")

    async def release(**options):
        with Monitor(judge="local", on_result=lambda e: seen.append(e.run.release), **options) as m:
            m.submit(case)

    asyncio.run(release())
    provider = LoggerProvider(resource=Resource({"service.version": "5.0"}))
    asyncio.run(release(telemetry=TelemetryOptions(logger_provider=provider)))
    assert seen == ["4.2", "5.0"]


class Receiver(BaseHTTPRequestHandler):
    """A webhook that answers with these codes in turn, and keeps what it gets."""

    codes: ClassVar[list[int]] = []
    got: ClassVar[list[dict]] = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.got.append(json.loads(body))
        self.send_response(self.codes.pop(0))
        self.end_headers()

    def log_message(self, *args):
        """Print nothing."""


@pytest.fixture
def webhook(monkeypatch):
    monkeypatch.setattr("ragaliq.lab.alarm.pause_before_retry", lambda *_, **__: 0.0)
    Receiver.got.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook/secret"
        server.shutdown()


NOW = Estimate(value=0.7, low=0.6, high=0.8, method="bets", n=300, effective_n=300.0)
BY = Estimate(value=-0.2, low=-0.3, high=-0.1, method="bets", n=300, effective_n=300.0)
CHANGE = QualityChange(
    pipeline="shop",
    metric="faithfulness",
    fingerprint="f",
    time=1.0,
    shift=Shift(direction="fell", now=NOW, difference=BY, e_value=40.0),
    reference="release 1.4",
)


def test_a_change_is_posted_as_a_sentence_with_its_figures(webhook):
    Receiver.codes[:] = [500, 200]
    asyncio.run(Webhook(webhook)(CHANGE))
    first, second = Receiver.got
    assert first == second
    sentence = "faithfulness of shop fell to 0.70: -0.20 (-0.30 to -0.10) against release 1.4"
    assert (first["text"], first["metric"]) == (sentence, "faithfulness")


def test_a_webhook_that_is_down_is_logged_without_its_address(webhook, caplog):
    Receiver.codes[:] = [500, 500, 500]
    asyncio.run(Webhook(webhook)(CHANGE))
    assert len(Receiver.got) == 3
    assert "an alarm was not delivered: the webhook answered 500" in caplog.text
    assert "secret" not in caplog.text


def test_a_webhook_behind_a_proxy_that_cannot_be_used_is_logged_with_its_variable(
    webhook, caplog, monkeypatch
):
    monkeypatch.setenv("ALL_PROXY", "socks://user:SECRET@proxy:1080")
    asyncio.run(Webhook(webhook)(CHANGE))
    assert "ALL_PROXY" in caplog.text
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"reference": 0},
        {"alpha": 1.0},
        {"tolerance": -0.1},
        {"on_alarm": 3},
        {"on_alarm": "hooks.example.org"},
    ],
)
def test_settings_out_of_range_are_refused_at_once(wrong):
    with pytest.raises(ConfigurationError):
        QualityAlarm(**wrong)


def test_a_slow_webhook_neither_delays_a_write_nor_is_given_up_with_it(monkeypatch):
    told = []

    async def tell_slowly(change):
        await asyncio.sleep(0.3)
        told.append(change)

    alarm = QualityAlarm(on_alarm=tell_slowly)
    monkeypatch.setattr("ragaliq.lab.alarm.scores_of", lambda record: [record])
    monkeypatch.setattr(alarm, "_add", lambda _: CHANGE)

    async def write():
        await asyncio.wait_for(alarm.write(["a record"]), 0.1)
        assert told == []
        await alarm.settle()

    asyncio.run(write())
    assert told == [CHANGE]

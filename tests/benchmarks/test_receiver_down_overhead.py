"""A request takes no longer because the receiver of its telemetry is dead, silent or failing.

Every variant traces the request, scores the answer and emits everything; they differ in the
receiver only. Evaluations of one variant may still run while the next is timed, as they would in an
application: the variants take turns in random order, so this troubles all of them alike.
"""

import contextlib
import sys
from pathlib import Path

import pytest
from interleaved import compare
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

TESTS = Path(__file__).parents[1]
for folder in (TESTS / "telemetry", TESTS / "langchain", TESTS / "applications"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

from receivers import receiver  # noqa: E402
from served import langchain_app, question  # noqa: E402

from langchain_ragaliq import RagaliqCallbackHandler  # noqa: E402
from ragaliq import Monitor, TelemetryOptions  # noqa: E402
from ragaliq.telemetry.setup import TelemetrySetup  # noqa: E402
from ragaliq.testing import ScriptedJudge  # noqa: E402

CALLS, ROUNDS, PASSES = 4, 40, 4
KINDS = ["healthy", "healthy, again", "dead", "slow", "failing"]
# In shares of a call with a healthy receiver, beside what two of those differ by.
GRACE = 0.15


class Application:
    """A chain whose answers are scored, traced to a receiver of one kind."""

    def __init__(self, url):
        self.setup = TelemetrySetup(
            Resource.create({}),
            span_exporter=OTLPSpanExporter(f"{url}/v1/traces"),
            log_exporter=OTLPLogExporter(f"{url}/v1/logs"),
            metric_reader=PeriodicExportingMetricReader(
                OTLPMetricExporter(f"{url}/v1/metrics"), 1000
            ),
            exit_timeout=0.1,
        )
        self.monitor = Monitor(
            judge=ScriptedJudge(),
            max_queue=100_000,
            telemetry=TelemetryOptions(
                tracer_provider=self.setup.tracer_provider,
                logger_provider=self.setup.logger_provider,
                meter_provider=self.setup.meter_provider,
            ),
        )
        self.ask = langchain_app().ask
        self.config = {"callbacks": [RagaliqCallbackHandler(self.monitor)]}
        self.tracer = self.setup.tracer_provider.get_tracer("application")

    def call(self):
        with self.tracer.start_as_current_span("request"):
            self.ask(question(1), self.config)


@pytest.mark.benchmark
def test_a_receiver_that_is_down_costs_a_request_nothing(report, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "30")
    with contextlib.ExitStack() as stack:
        applications = {
            kind: Application(stack.enter_context(receiver(kind.partition(",")[0])))
            for kind in KINDS
        }

        def settle():
            for application in applications.values():
                assert application.monitor.flush(60)

        variants = {kind: application.call for kind, application in applications.items()}
        found = compare(variants, calls=CALLS, rounds=ROUNDS, passes=PASSES, between=settle)
        report(found.table("LangChain, traced and scored"))
        settle()
        for application in applications.values():
            assert application.monitor.close(30)
            assert application.monitor.stats().outcomes == {"evaluated": found.calls}
            application.setup.shutdown(0.1)
    noise = abs(found.added(KINDS[1])) + GRACE * found.base
    for kind in KINDS[2:]:
        assert found.added(kind) <= noise

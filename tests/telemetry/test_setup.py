"""`configure` sets up a process that has nothing, and leaves any other alone."""

import asyncio
import os
import sys

import pytest
from receivers import receiver
from wire import listening

from ragaliq import ConfigurationError, telemetry

PRELUDE = """
import logging
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from ragaliq import ConfigurationError, telemetry

class Foreign(trace.TracerProvider):
    def get_tracer(self, *args, **kwargs):
        return trace.NoOpTracer()

def configure():
    return telemetry.configure(
        span_exporter=InMemorySpanExporter(),
        log_exporter=InMemoryLogRecordExporter(),
        metric_reader=InMemoryMetricReader(),
    )
"""


@pytest.fixture
def run(tmp_path, warm_python):
    """What a process prints that runs this code, and no error."""

    def run(code, **environment):
        script = tmp_path / "script.py"
        script.write_text(PRELUDE + code)
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        done = warm_python.run(script, cwd=tmp_path, env=environment)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


def test_an_endpoint_without_a_scheme_is_refused():
    with pytest.raises(ConfigurationError, match="begin endpoint with http://"):
        telemetry.configure(endpoint="localhost:4318")


@pytest.mark.parametrize(
    ("there", "kind"),
    [
        ("trace.set_tracer_provider(TracerProvider())", "tracer"),
        ("trace.set_tracer_provider(Foreign())", "tracer"),
        ("_logs.set_logger_provider(LoggerProvider())", "logger"),
        ("metrics.set_meter_provider(MeterProvider())", "meter"),
    ],
)
def test_a_process_that_has_a_provider_is_left_as_it_is(run, there, kind):
    code = f"""
{there}
def providers():
    return trace.get_tracer_provider(), _logs.get_logger_provider(), metrics.get_meter_provider()

before = providers()
try:
    configure()
except ConfigurationError as error:
    print(error)
assert providers() == before
"""
    assert f"{kind} provider already" in run(code)


def test_what_it_returns_is_what_the_process_uses_and_flushes(run):
    code = """
setup = configure()
assert setup.tracer_provider is trace.get_tracer_provider()
assert setup.logger_provider is _logs.get_logger_provider()
assert setup.meter_provider is metrics.get_meter_provider()
setup.tracer_provider.get_tracer("shop").start_span("waiting").end()
print(setup.flush())
"""
    assert run(code) == "True\n"


@pytest.mark.parametrize("signal", ["traces", "logs", "metrics"])
def test_a_flush_is_false_where_the_receiver_took_nothing(run, signal):
    code = """
logging.disable()
in_memory = {{
    "span_exporter": InMemorySpanExporter(),
    "log_exporter": InMemoryLogRecordExporter(),
    "metric_reader": InMemoryMetricReader(),
}}
del in_memory[{argument!r}]
setup = telemetry.configure(endpoint="{url}", exit_timeout=0.1, **in_memory)
setup.tracer_provider.get_tracer("shop").start_span("waiting").end()
setup.logger_provider.get_logger("shop").emit(event_name="waiting")
count = setup.meter_provider.get_meter("shop").create_counter("waiting")
count.add(1)
print(setup.flush(), setup.flush())
"""
    arguments = {"traces": "span_exporter", "logs": "log_exporter", "metrics": "metric_reader"}
    with receiver("failing") as url:
        code = code.format(url=url, argument=arguments[signal])
        said = run(code, OTEL_EXPORTER_OTLP_TIMEOUT="1")
    # Each flush sends all metrics again.
    assert said == ("False False\n" if signal == "metrics" else "False True\n")


def test_processes_of_a_service_have_instance_ids_of_their_own(run):
    code = """
resource = configure().tracer_provider.resource.attributes
print(resource["service.name"], resource["service.instance.id"])
"""
    (name, one), (_, other) = (run(code, OTEL_SERVICE_NAME="shop").split() for _ in range(2))
    assert name == "shop"
    assert one != other
    named = {"OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=pod-7"}
    assert run(code, OTEL_SERVICE_NAME="shop", **named) == "shop pod-7\n"


SENDING = """
from ragaliq import Monitor, RAGTestCase
from ragaliq.testing import ScriptedJudge
setup = telemetry.configure(service_name="shop", endpoint="{url}")
with Monitor(judge=ScriptedJudge(), metrics=["relevance"]) as monitor:
    monitor.submit(RAGTestCase(query="q", context=["c"], response="Alpha is one."))
{ending}
try:
    telemetry.configure()
except ConfigurationError:
    print("refused")
"""


@pytest.mark.parametrize("ending", ["assert setup.flush(5.0)", "assert setup.shutdown()", ""])
async def test_a_process_that_has_nothing_sends_all_signals_at_the_latest_when_it_ends(run, ending):
    async with listening() as (wire, received):
        code = SENDING.format(url=wire.url, ending=ending)
        assert await asyncio.to_thread(run, code) == "refused\n"
        assert "evaluation relevance" in {s.name for s in await received.until("spans", 2)}
        await received.until("events", 1)
        await received.until("metrics", 1)
    assert "ragaliq.run.count" in {metric.name for metric in received.metrics}


def test_a_monitor_made_before_reports_to_what_is_set_up_later(run):
    run(
        """
from ragaliq import Monitor, RAGTestCase
from ragaliq.testing import ScriptedJudge
case = RAGTestCase(query="q", context=["c"], response="Alpha is one.")
early = Monitor(judge=ScriptedJudge())
early.submit(case)
assert early.flush(30)
reader, spans, events = InMemoryMetricReader(), InMemorySpanExporter(), InMemoryLogRecordExporter()
setup = telemetry.configure(span_exporter=spans, log_exporter=events, metric_reader=reader)
late = Monitor(judge=ScriptedJudge())
for monitor in (early, late):
    monitor.submit(case)
    assert monitor.close(30)
(resource,) = reader.get_metrics_data().resource_metrics
metrics = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
points = metrics["ragaliq.run.count"].data.data_points
assert sum(point.value for point in points) == 3
assert metrics["ragaliq.evaluation.count"].data.data_points
assert setup.shutdown()
assert len(spans.get_finished_spans()) == 2 * 4
assert len(events.get_finished_logs()) == 2 * 2
"""
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_exports_and_closes_for_itself(run):
    out = run(
        """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork in a process with threads
spans = InMemorySpanExporter()
setup = telemetry.configure(
    span_exporter=spans,
    log_exporter=InMemoryLogRecordExporter(),
    metric_reader=InMemoryMetricReader(),
)
tracer = setup.tracer_provider.get_tracer("application")
tracer.start_span("parent's").end()
if os.fork() == 0:
    tracer.start_span("child's").end()
    assert setup.shutdown(20)
    print([span.name for span in spans.get_finished_spans()], flush=True)
    os._exit(0)
assert os.wait()[1] == 0
assert setup.shutdown(20)
print([span.name for span in spans.get_finished_spans()])
"""
    )
    assert out.splitlines() == ['["child\'s"]', '["parent\'s"]']

"""A real OTLP/HTTP receiver gets what a monitor emits."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys

import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings

from ragaliq import Monitor, TelemetryOptions
from ragaliq.testing import ScriptedJudge


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def receiver(port):
    return OtelTapHttpProtobufReceiver(OtelTapHttpProtobufReceiverSettings(http_port=port))


def emit(port, case):
    endpoint = f"http://127.0.0.1:{port}/v1"
    tracer_provider, logger_provider = TracerProvider(), LoggerProvider()
    tracer_provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/traces", timeout=2))
    )
    logger_provider.add_log_record_processor(
        BatchLogRecordProcessor(OTLPLogExporter(f"{endpoint}/logs", timeout=2))
    )
    monitor = Monitor(
        judge=ScriptedJudge(),
        evaluators=["faithfulness"],
        telemetry=TelemetryOptions(
            tracer_provider=tracer_provider, logger_provider=logger_provider
        ),
    )
    with tracer_provider.get_tracer("app").start_as_current_span("request") as request:
        monitor.submit(case, pipeline="support")
    monitor.close(5.0)
    tracer_provider.shutdown()
    logger_provider.shutdown()
    return request.get_span_context(), monitor.stats()


def values(attributes):
    def plain(value):
        kind = value.WhichOneof("value")
        if kind == "array_value":
            return [plain(item) for item in value.array_value.values]
        return getattr(value, kind)

    return {item.key: plain(item.value) for item in attributes}


async def test_spans_link_and_event_arrive(port, secret_case):
    async with receiver(port) as tap:
        wanted = {
            "evaluation support": tap.await_trace(
                lambda s: s.name == "evaluation support", timeout=20
            ),
            "evaluation faithfulness": tap.await_trace(
                lambda s: s.name == "evaluation faithfulness", timeout=20
            ),
            "claim": tap.await_trace(lambda s: s.name == "claim supported", timeout=20),
            "event": tap.await_log(
                lambda r: r.event_name == "gen_ai.evaluation.result", timeout=20
            ),
        }
        waiting = asyncio.gather(*wanted.values())
        await asyncio.sleep(0)
        request, _ = await asyncio.to_thread(emit, port, secret_case)
        got = dict(zip(wanted, await waiting, strict=True))

    root, metric, event = got["evaluation support"], got["evaluation faithfulness"], got["event"]
    (link,) = root.links
    assert link.trace_id == request.trace_id.to_bytes(16)
    assert link.span_id == request.span_id.to_bytes(8)
    assert metric.parent_span_id == root.span_id
    assert got["claim"].parent_span_id == metric.span_id
    assert values(metric.attributes)["gen_ai.evaluation.score.value"] == 0.5
    assert values(metric.attributes)["ragaliq.claim.verdicts"] == ["SUPPORTED", "NOT_ENOUGH_INFO"]
    assert event.trace_id == request.trace_id.to_bytes(16)
    assert event.span_id == request.span_id.to_bytes(8)
    assert values(event.attributes)["gen_ai.evaluation.name"] == "faithfulness"
    assert all("Zanzibar" not in str(item) for item in got.values())


@pytest.mark.filterwarnings("ignore::Warning")
def test_a_dead_receiver_changes_nothing_for_the_monitor(port, secret_case, caplog):
    _, stats = emit(port, secret_case)
    assert stats.outcomes == {"evaluated": 1}


CONFIGURE = """
from ragaliq import Monitor, RAGTestCase, telemetry
from ragaliq.testing import ScriptedJudge
setup = telemetry.configure(service_name="shop", endpoint="http://127.0.0.1:{port}")
with Monitor(judge=ScriptedJudge()) as monitor:
    monitor.submit(RAGTestCase(query="q", context=["c"], response="Alpha is one."))
{ending}
try:
    telemetry.configure()
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("ending", ["assert setup.flush(5.0)", "assert setup.shutdown()", ""])
async def test_configure_sets_up_a_process_that_has_nothing(port, ending):
    async with receiver(port) as tap:
        span = tap.await_trace(lambda s: s.name == "evaluation relevance", timeout=30)
        event = tap.await_log(lambda r: bool(r.event_name), timeout=30)
        metric = tap.await_metric(lambda m: m.name == "ragaliq.run.count", timeout=30)
        waiting = asyncio.gather(span, event, metric)
        await asyncio.sleep(0)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            CONFIGURE.format(port=port, ending=ending),
            env={"PYTHONPATH": ":".join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, err.decode()
        assert out.decode().strip() == "ConfigurationError"
        await waiting

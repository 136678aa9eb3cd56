"""A receiver that is gone, failing or silent: the chain goes on, and a flush says so."""

import gc
import logging
import subprocess
import sys
from contextlib import suppress

import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from receivers import receiver
from served import langchain_app, number_of, question

from connections import listening
from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor, TelemetryOptions
from ragaliq.telemetry.setup import TelemetrySetup
from ragaliq.testing import ScriptedJudge
from self_signed import MISTRUSTED, self_signed

pytestmark = pytest.mark.slow

QUEUE, BATCH, RUNS = 64, 32, 100


@pytest.fixture(params=["dead", "slow", "failing"])
def kind(request):
    return request.param


@pytest.fixture
def url(kind):
    with receiver(kind) as address:
        yield address


@pytest.fixture
def setup(url, monkeypatch):
    """What `configure` makes, with short queues, and without making it the process's own."""
    for prefix in ("OTEL_BSP", "OTEL_BLRP"):
        monkeypatch.setenv(f"{prefix}_MAX_QUEUE_SIZE", str(QUEUE))
        monkeypatch.setenv(f"{prefix}_MAX_EXPORT_BATCH_SIZE", str(BATCH))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    # pytest keeps what is logged, and with an exporter's exceptions the batches in their frames.
    monkeypatch.setattr(logging.getLogger("opentelemetry"), "propagate", False)
    setup = TelemetrySetup(
        Resource.create({}),
        span_exporter=OTLPSpanExporter(f"{url}/v1/traces"),
        log_exporter=OTLPLogExporter(f"{url}/v1/logs"),
        metric_reader=InMemoryMetricReader(),
        exit_timeout=0.1,
    )
    yield setup
    setup.shutdown(30.0)


def test_the_chain_runs_everything_is_scored_and_a_flush_says_that_something_is_lost(setup):
    results = []
    monitor = Monitor(
        judge=ScriptedJudge(),
        metrics=["faithfulness"],
        on_result=results.append,
        telemetry=TelemetryOptions(
            tracer_provider=setup.tracer_provider,
            logger_provider=setup.logger_provider,
            meter_provider=setup.meter_provider,
        ),
    )
    app, handler = langchain_app(), RagaliqCallbackHandler(monitor)
    for number in range(RUNS):
        app.ask(question(number), {"callbacks": [handler]})
    assert monitor.close(60.0)
    assert sorted(number_of(result.case.query) for result in results) == list(range(RUNS))
    assert monitor.stats().outcomes == {"evaluated": RUNS}
    gc.collect()
    spans = [each for each in gc.get_objects() if type(each) is ReadableSpan]
    kept = [span for span in spans if span.resource is setup.tracer_provider.resource]
    assert len(kept) <= QUEUE + BATCH

    assert not setup.flush(60.0)
    assert setup.shutdown(60.0)


EXITING = """
import sys
from ragaliq import Monitor, RAGTestCase, telemetry
from ragaliq.testing import ScriptedJudge
telemetry.configure(endpoint={url!r}, exit_timeout=0.5)
monitor = Monitor(judge=ScriptedJudge(), exit_timeout=5.0)
assert monitor.submit(RAGTestCase(query="q", context=["c"], response="Alpha is one."))
sys.stdout.write("served")
"""


def test_the_process_ends_without_waiting_for_the_receiver(url):
    # The exporter's own time limit is far beyond the test's: only ours can end the process.
    done = subprocess.run(
        [sys.executable, "-c", EXITING.format(url=url)],
        env={"PYTHONPATH": ":".join(sys.path), "OTEL_EXPORTER_OTLP_TIMEOUT": "600"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "served"), done.stderr
    # What SDK 1.39's own metric reader meets it logs with all its frames.
    assert "Traceback" not in done.stderr.partition("Exception while exporting metrics")[0]


@pytest.mark.parametrize("kind", ["nobody's", *MISTRUSTED])
def test_a_receiver_without_a_trusted_certificate_gets_nothing_and_the_log_says_why(
    kind, tmp_path, monkeypatch, caplog
):
    options, reason = MISTRUSTED.get(kind, ({}, "self-signed certificate"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "4")  # a retry is logged with its reason
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # before the exporter's own
        monkeypatch.delenv(name, raising=False)
    heard, context = [], self_signed(tmp_path, **options)
    trusts = {"certificate_file": f"{tmp_path}/certificate.pem"} if options else {}

    def serve(line):
        with suppress(OSError), line, context.wrap_socket(line, server_side=True) as inside:
            heard.append(inside.recv(1000))

    with listening(serve) as port:
        address = f"https://127.0.0.1:{port}/v1"
        setup = TelemetrySetup(
            Resource.create({}),
            span_exporter=OTLPSpanExporter(f"{address}/traces", **trusts),
            log_exporter=OTLPLogExporter(f"{address}/logs", **trusts),
            metric_reader=InMemoryMetricReader(),
            exit_timeout=0.1,
        )
        setup.tracer_provider.get_tracer("shop").start_span("very-secret").end()
        assert not setup.flush(5.0)
        setup.shutdown(5.0)
    assert [said for said in heard if said] == []
    assert reason in caplog.text.replace("doesn't match", "IP address mismatch")
    assert "very-secret" not in caplog.text

"""Sends verdicts to an OpenTelemetry collector (needs `ragaliq[otlp]`).

OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 python export_to_collector.py

Each evaluation is a trace of its own, with a link to the span of the request it is about. An
application that has set up OpenTelemetry itself leaves `configure` out.
"""

from opentelemetry import trace

from ragaliq import Monitor, RAGTestCase, telemetry

setup = telemetry.configure(service_name="shop")
tracer = trace.get_tracer("shop")

with Monitor(judge="local", metrics=["faithfulness"]) as monitor:
    with tracer.start_as_current_span("answer a question"):
        monitor.submit(
            RAGTestCase(
                query="How long do refunds take?",
                context=["Refunds are paid within five working days."],
                response="Refunds are paid within five working days. They come in cash.",
            ),
            pipeline="support",
        )
    monitor.flush(timeout=30)

print("sent" if setup.flush() else "the collector did not take everything")

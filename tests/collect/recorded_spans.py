"""Spans of applications that trace themselves."""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from spans import Spans


def recorded(act, **options):
    """The spans of what an application does, in the order in which they ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    for processor in (*options.get("processors", ()), SimpleSpanProcessor(exporter)):
        provider.add_span_processor(processor)
    act(Spans(provider))
    return list(exporter.get_finished_spans())


def request_with_a_chain(app):
    with app.request():
        app.chain()

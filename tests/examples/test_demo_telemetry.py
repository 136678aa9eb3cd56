"""What the demo says about telemetry: counts that are true, private text that is found."""

import io

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link
from rich.console import Console

from handbook.backend import _shown
from handbook.emitted import Collected, emitted_view
from handbook.errors import DemoError
from handbook.quotes import count_quotes

SECRET = "the owner of the red bike lives in Leiden"


def spans(*named):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("ragaliq")
    target = tracer.start_span("target")
    for name, attributes, linked in named:
        links = [Link(target.get_span_context())] if linked else []
        tracer.start_span(name, links=links, attributes=attributes).end()
    return list(exporter.get_finished_spans())


def event(**attributes):
    return LogRecord(event_name="gen_ai.evaluation.result", attributes=attributes)


def shown(collected, private=(SECRET,)):
    console = Console(file=io.StringIO(), width=200)
    console.print(emitted_view(collected, private))
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("attributes", "event_attributes"),
    [({"a": SECRET}, {}), ({"a": ("x", f"He said: {SECRET}!")}, {}), ({}, {"b": SECRET.upper()})],
    ids=["attribute", "list", "event"],
)
def test_private_text_in_telemetry_is_noticed(attributes, event_attributes):
    collected = Collected(
        spans=spans(("claim", attributes, False)), events=[event(**event_attributes)]
    )
    assert "Content: 1 of" in shown(collected)


def test_telemetry_that_did_not_arrive_is_a_problem():
    with pytest.raises(DemoError, match="0 spans and 1 events"):
        shown(Collected(events=[event()]))


def test_part_of_a_private_text_counts_as_a_quotation():
    assert count_quotes(["owner of the red bike"], [SECRET]) == 1
    assert count_quotes(["the red bike is here"], [SECRET]) == 0


def test_credentials_in_the_endpoint_are_not_shown():
    assert _shown("http://user:secret@host:4318/x") == "http://host:4318/x"

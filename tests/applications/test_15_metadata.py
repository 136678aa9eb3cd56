"""Line 15: metadata of documents and of the run reach results, records and telemetry."""

import pytest
from langchain_parts import HOURS, REFUNDS, Finding, model, rag
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rag_parts import QUESTION

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor, TelemetryOptions
from ragaliq.testing import ScriptedJudge


def test_metadata_of_documents_and_of_the_run_reach_the_case(watch):
    config = {**watch.config, "metadata": {"tenant": "acme", "ls_provider": "x", "thread_id": "t"}}
    rag(Finding()).invoke(QUESTION, config)
    assert [chunk.metadata for chunk in watch.only.context] == [
        {"source": "0.md", "page": 0},
        {"source": "1.md", "page": 1},
    ]
    assert watch.only.metadata == {"tenant": "acme", "thread_id": "t"}


def test_with_content_capture_a_record_names_the_document_and_the_tenant():
    records = []

    class Keeping:
        name = "keeping"

        async def write(self, batch):
            records.extend(batch)

        async def aclose(self):
            pass

    monitor = Monitor(judge=ScriptedJudge(), sinks=[Keeping()], capture_content=True)
    config = {"callbacks": [RagaliqCallbackHandler(monitor)], "metadata": {"tenant": "acme"}}
    rag(Finding()).invoke(QUESTION, config)
    assert monitor.close(30)
    (record,) = records
    assert record.case.metadata == {"tenant": "acme"}
    assert record.case.context[0].metadata == {"source": "0.md", "page": 0}
    assert record.case.sources.context == "prompt"


@pytest.mark.parametrize("may_leave", [True, False])
def test_a_contradicted_claim_points_to_its_file_in_telemetry_where_content_may_leave(may_leave):
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monitor = Monitor(
        judge="local",
        evaluators=["faithfulness"],
        executor="thread",
        capture_content=may_leave,
        telemetry=TelemetryOptions(tracer_provider=provider),
    )
    config = {"callbacks": [RagaliqCallbackHandler(monitor)], "metadata": {"tenant": "acme"}}
    wrong = model("Refunds take nine days after the parcel has arrived.")
    rag(Finding(texts=[HOURS, REFUNDS]), wrong).invoke(QUESTION, config)
    assert monitor.close(30)
    by_name = {span.name: dict(span.attributes) for span in spans.get_finished_spans()}
    assert by_name["claim contradicted"]["ragaliq.claim.verdict"] == "CONTRADICTED"
    sources = by_name["claim contradicted"].get("ragaliq.claim.document.sources")
    assert sources == (("1.md",) if may_leave else None)
    said = [attributes.get("metadata") for attributes in by_name.values()]
    assert ('{"tenant": "acme"}' in said) == may_leave
    assert may_leave or not any(".md" in str(held) for held in by_name.values())

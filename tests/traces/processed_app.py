"""Answers a question under one instrumentation, and says what span processor and file make of it.

In a process of its own: these instrumentations cannot be taken out of a process without a trace.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.tools import create_retriever_tool
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otlp import protobuf
from rag_parts import QUESTION, FixedRetriever, calling, model, rag_chain

from ragaliq import DatasetError, Monitor, RagaliqSpanProcessor
from ragaliq.datasets import read_cases
from ragaliq.testing import ScriptedJudge


def plain(case):
    return case.model_dump(mode="json", exclude={"tags", "metadata"})


def main(module, name, app, folder):
    results = []
    monitor = Monitor(judge=ScriptedJudge(), on_result=results.append)
    processor = RagaliqSpanProcessor(monitor)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(processor)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    getattr(import_module(module), name)().instrument(tracer_provider=provider, skip_dep_check=True)
    if app == "chain":
        chain = rag_chain(FixedRetriever(prefix="d")).with_config(run_name="rag")
        chain.invoke(QUESTION, {"metadata": {"thread_id": "t1"}})
    else:
        tool = create_retriever_tool(FixedRetriever(prefix="d"), "library", "Finds texts.")
        replies = calling("library", query="refunds"), "Five days."
        create_agent(model(*replies), [tool]).invoke({"messages": [("user", QUESTION)]})
    provider.force_flush()
    path = Path(folder) / "t.pb"
    path.write_bytes(protobuf(exporter.get_finished_spans()))
    reader = read_cases(path)
    try:
        in_file = list(reader)
    except DatasetError:
        in_file = []
    said = {
        "processor": [plain(result.case) for result in results],
        "incomplete": dict(monitor.stats().incomplete),
        "file": [plain(case) for case in in_file],
        "left_out": dict(reader.skipped_runs),
        "started": monitor.stats().started,
        "errors": processor.errors,
    }
    sys.stdout.write(json.dumps(said))


main(*sys.argv[1:])

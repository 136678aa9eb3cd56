"""Answers a question under one instrumentation and writes the trace as OTLP to standard output.

In a process of its own: these instrumentations cannot be taken out of a process without a trace.
"""

import sys
from importlib import import_module

from langchain.agents import create_agent
from langchain_core.tools import create_retriever_tool
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otlp import protobuf
from rag_parts import QUESTION, FixedRetriever, calling, model, rag_chain


def main(module, name, app):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    getattr(import_module(module), name)().instrument(tracer_provider=provider, skip_dep_check=True)
    if app == "chain":
        chain = rag_chain(FixedRetriever(prefix="d")).with_config(run_name="rag")
        chain.invoke(QUESTION, {"metadata": {"thread_id": "t1"}})
    else:
        tool = create_retriever_tool(FixedRetriever(prefix="d"), "library", "Finds texts.")
        replies = calling("library", query="refunds"), "Five days."
        create_agent(model(*replies), [tool]).invoke({"messages": [("user", QUESTION)]})
    sys.stdout.buffer.write(protobuf(exporter.get_finished_spans()))


main(*sys.argv[1:])

"""Answers questions under one instrumentation and writes the traces of each application as OTLP.

In a process of its own: these instrumentations cannot be taken out of a process without a trace.
"""

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


def chain():
    named = rag_chain(FixedRetriever(prefix="d")).with_config(run_name="rag")
    named.invoke(QUESTION, {"metadata": {"thread_id": "t1"}})


def agent():
    tool = create_retriever_tool(FixedRetriever(prefix="d"), "library", "Finds texts.")
    replies = calling("library", query="refunds"), "Five days."
    create_agent(model(*replies), [tool]).invoke({"messages": [("user", QUESTION)]})


def batch():
    """Several questions at once, and one after them: OpenLLMetry writes them all as one trace."""
    rag_chain(FixedRetriever(prefix="d")).batch([f"{QUESTION} 1", f"{QUESTION} 2"])
    rag_chain(FixedRetriever(prefix="d")).invoke(f"{QUESTION} 3")


def main(module, name, folder):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    getattr(import_module(module), name)().instrument(tracer_provider=provider, skip_dep_check=True)
    for app in (chain, agent, batch):
        app()
        Path(folder, f"{app.__name__}.pb").write_bytes(protobuf(exporter.get_finished_spans()))
        exporter.clear()


main(*sys.argv[1:])

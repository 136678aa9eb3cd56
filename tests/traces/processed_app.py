"""Answers under each instrumentation, and says what span processor and file make of it.

In processes of their own: these instrumentations cannot be taken out of a process without a trace.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TypedDict

from instrumentors import GENAI, TRACELOOP, environment
from langchain.agents import create_agent
from langchain_core.tools import create_retriever_tool
from langgraph.graph import START, StateGraph
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otlp import protobuf
from rag_parts import QUESTION, FixedRetriever, calling, model, rag_chain

from ragaliq import DatasetError, Monitor
from ragaliq.datasets import read_cases
from ragaliq.testing import ScriptedJudge
from ragaliq.traces import RagaliqSpanProcessor


def plain(case):
    return case.model_dump(mode="json", exclude={"tags", "metadata"})


def chain():
    named = rag_chain(FixedRetriever(prefix="d")).with_config(run_name="rag")
    named.invoke(QUESTION, {"metadata": {"thread_id": "t1"}})


def agent():
    tool = create_retriever_tool(FixedRetriever(prefix="d"), "library", "Finds texts.")
    replies = calling("library", query="refunds"), "Five days."
    create_agent(model(*replies), [tool]).invoke({"messages": [("user", QUESTION)]})


class State(TypedDict, total=False):
    question: str
    documents: list
    generation: str


def graph():
    """Has a model check the answer, which was asked another question."""

    def search(state):
        return {"documents": FixedRetriever().invoke("refund duration")}

    def answer(state):
        texts = "\n".join(document.page_content for document in state["documents"])
        return {"generation": model().invoke(f"{texts}\n{state['question']}").text}

    def check(state):
        model("The answer is right, I think.").invoke(f"{state['documents']}{state['generation']}")
        return {"documents": state["documents"]}

    nodes = StateGraph(State).add_sequence([search, answer, check]).add_edge(START, "search")
    nodes.compile().invoke({"question": QUESTION})


def batch():
    """Several questions at once, and one after them: OpenLLMetry writes them all as one trace."""
    rag_chain(FixedRetriever(prefix="d")).batch([f"{QUESTION} 1", f"{QUESTION} 2"])
    rag_chain(FixedRetriever(prefix="d")).invoke(f"{QUESTION} 3")


def answered(app, folder, provider):
    """What an application's answers come to, live and in the file."""
    results, exporter = [], InMemorySpanExporter()
    monitor = Monitor(judge=ScriptedJudge(), on_result=results.append)
    processor = RagaliqSpanProcessor(monitor)
    exporting = SimpleSpanProcessor(exporter)
    provider.add_span_processor(processor)
    provider.add_span_processor(exporting)
    app()
    provider.force_flush()
    processor.shutdown()
    exporting.shutdown()
    path = Path(folder) / f"{app.__name__}.pb"
    path.write_bytes(protobuf(exporter.get_finished_spans()))
    reader = read_cases(path)
    try:
        in_file = list(reader)
    except DatasetError:
        in_file = []
    stats = monitor.stats()
    not_rag = stats.outcomes.get("not_rag", 0)
    return {
        "processor": [plain(result.case) for result in results],
        "incomplete": dict(stats.incomplete) | ({"not_rag": not_rag} if not_rag else {}),
        "file": [plain(case) for case in in_file],
        "skipped": dict(reader.skipped_runs),
        "started": stats.started,
        "errors": processor.errors,
    }


def main(folder):
    """Each in a child of its own, which finds ragaliq and LangChain imported."""
    for content in ("SPAN_ONLY", "NO_CONTENT"):
        for module, name in (GENAI, TRACELOOP):
            if not os.fork():
                os.environ |= environment(content)
                provider = TracerProvider()
                instrumentor = getattr(import_module(module), name)()
                instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)
                apps = chain, agent, graph, batch
                said = {app.__name__: answered(app, folder, provider) for app in apps}
                Path(folder, f"{module}-{content}.json").write_text(json.dumps(said))
                os._exit(0)
            os.wait()


main(*sys.argv[1:])

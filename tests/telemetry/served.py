"""A small RAG application in each framework, instrumented with OpenInference, sync and async."""

import asyncio
import contextlib
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from llama_index_parts import engine
from llama_index_parts import model as llama_index_model
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from rag_parts import FixedRetriever, model, rag_chain

import langchain_ragaliq
import llama_index.evaluation.ragaliq as llama_index_ragaliq

SECRET = "Zanzibar"
DOCUMENT = f"{SECRET} lies far away."
ANSWER = f"{SECRET} lies far away. {SECRET} has nine towers."


def question(number):
    return f"Question {number}: where is {SECRET}?"


def number_of(query):
    return int(re.match(r"Question (\d+):", query)[1])


class App(NamedTuple):
    """One application, and how its framework is traced and scored."""

    ask: Callable[..., Any]
    aask: Callable[..., Any]
    instrumentor: Any
    adapter: Any

    @contextlib.contextmanager
    def watched(self, monitor, tracer_provider):
        self.instrumentor.instrument(tracer_provider=tracer_provider, skip_dep_check=True)
        self.adapter.attach(monitor=monitor)
        try:
            yield
        finally:
            self.adapter.detach()
            self.instrumentor.uninstrument()


def langchain_app():
    """A chain of a retriever, a prompt and a model."""
    chain = rag_chain(FixedRetriever(texts=[DOCUMENT]), model(ANSWER)).with_config(run_name="rag")
    return App(chain.invoke, chain.ainvoke, LangChainInstrumentor(), langchain_ragaliq)


def llama_index_app():
    """A query engine over one document."""
    made = engine(DOCUMENT, llm=llama_index_model(ANSWER))
    return App(made.query, made.aquery, LlamaIndexInstrumentor(), llama_index_ragaliq)


APPS = {"langchain": langchain_app, "llama_index": llama_index_app}


def serve(app, tracer, requests, *, asynchronous):
    """Answer so many requests at the same time, each in a span of its own."""

    def one(number):
        with tracer.start_as_current_span(f"request {number}"):
            app.ask(question(number))

    async def aone(number):
        with tracer.start_as_current_span(f"request {number}"):
            await app.aask(question(number))

    async def everything():
        await asyncio.gather(*(aone(number) for number in range(requests)))

    if asynchronous:
        asyncio.run(everything())
    else:
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(one, range(requests)))

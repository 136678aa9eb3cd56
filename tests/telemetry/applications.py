"""A small RAG application in each framework, instrumented with OpenInference, sync and async."""

import asyncio
import contextlib
import re
from concurrent.futures import ThreadPoolExecutor

from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
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


class LangChainApp:
    """A chain of a retriever, a prompt and a model."""

    def __init__(self):
        chain = rag_chain(FixedRetriever(texts=[DOCUMENT]), model(ANSWER))
        self.chain = chain.with_config(run_name="rag")

    def ask(self, text):
        return self.chain.invoke(text)

    async def aask(self, text):
        return await self.chain.ainvoke(text)

    @staticmethod
    @contextlib.contextmanager
    def watched(monitor, tracer_provider):
        instrumentor = LangChainInstrumentor()
        instrumentor.instrument(tracer_provider=tracer_provider, skip_dep_check=True)
        langchain_ragaliq.attach(langchain_ragaliq.RagaliqCallbackHandler(monitor))
        try:
            yield
        finally:
            langchain_ragaliq.detach()
            instrumentor.uninstrument()


class LlamaIndexApp:
    """A query engine over one document."""

    class Retriever(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [NodeWithScore(node=TextNode(text=DOCUMENT), score=1.0)]

    class Model(CustomLLM):
        @property
        def metadata(self):
            return LLMMetadata()

        def complete(self, prompt, formatted=False, **kwargs):
            return CompletionResponse(text=ANSWER)

        def stream_complete(self, prompt, formatted=False, **kwargs):
            raise NotImplementedError

    def __init__(self):
        self.engine = RetrieverQueryEngine.from_args(self.Retriever(), llm=self.Model())

    def ask(self, text):
        return self.engine.query(text)

    async def aask(self, text):
        return await self.engine.aquery(text)

    @staticmethod
    @contextlib.contextmanager
    def watched(monitor, tracer_provider):
        instrumentor = LlamaIndexInstrumentor()
        instrumentor.instrument(tracer_provider=tracer_provider, skip_dep_check=True)
        llama_index_ragaliq.attach(monitor)
        try:
            yield
        finally:
            llama_index_ragaliq.detach()
            instrumentor.uninstrument()


APPS = {"langchain": LangChainApp, "llama_index": LlamaIndexApp}


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

"""A small RAG application in each framework, instrumented with OpenInference, sync and async."""

from __future__ import annotations

import asyncio
import contextlib
import re
from concurrent.futures import ThreadPoolExecutor

from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

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

    class Retriever(LangChainRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(page_content=DOCUMENT)]

    def __init__(self):
        prompt = ChatPromptTemplate.from_template("{context}\n{question}")
        answer = RunnableLambda(self._answer)
        parts = {"context": self.Retriever(), "question": RunnablePassthrough()}
        self.chain = (parts | prompt | answer).with_config(run_name="rag")

    @staticmethod
    def _answer(prompt):
        model = GenericFakeChatModel(messages=iter([AIMessage(ANSWER)]))
        return model.invoke(prompt).content

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

    class Retriever(LlamaIndexRetriever):
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

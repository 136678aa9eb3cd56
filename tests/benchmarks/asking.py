"""Asking an application while given handlers listen: LangChain's usual chain, LlamaIndex' engine.

Its retriever and its model take no time, so that the handlers' share is as large as it gets.
"""

import asyncio
from contextlib import contextmanager

from langchain_core.callbacks import BaseCallbackHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from rag_chain import QUESTION, TEXTS, rag_chain

NODES = [
    NodeWithScore(node=TextNode(text=text, id_=str(n)), score=0.5) for n, text in enumerate(TEXTS)
]


class EmptyCallbackHandler(BaseCallbackHandler):
    run_inline = True

    def on_chat_model_start(self, *args, **kwargs):
        """Without it LangChain would try `on_llm_start` instead."""


class EmptySpanHandler(BaseSpanHandler):
    """The inherited bookkeeping replaced by nothing."""

    def span_enter(self, *args, **kwargs):
        pass

    span_exit = span_drop = new_span = prepare_to_exit_span = prepare_to_drop_span = span_enter


class ConstantRetriever(BaseRetriever):
    def _retrieve(self, query_bundle):
        return list(NODES)

    async def _aretrieve(self, query_bundle):
        return list(NODES)


@contextmanager
def langchain(mode="sync"):
    """Ask the chain once; the event loop is kept from call to call."""
    chain = rag_chain()
    with asyncio.Runner() as runner:

        def ask(handlers):
            config = {"callbacks": handlers}
            if mode == "sync":
                return chain.invoke(QUESTION, config)
            return runner.run(chain.ainvoke(QUESTION, config))

        yield ask


@contextmanager
def llama_index(mode="sync"):
    """Ask the engine once; the event loop is kept from call to call."""
    dispatcher = get_dispatcher()
    before = dispatcher.span_handlers
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        engine = RetrieverQueryEngine.from_args(ConstantRetriever(), llm=MockLLM(max_tokens=8))

        def ask(handlers):
            dispatcher.span_handlers = handlers
            if mode == "sync":
                return engine.query(QUESTION)
            return runner.run(engine.aquery(QUESTION))

        yield ask
        dispatcher.span_handlers = before
        asyncio.set_event_loop(None)

"""What the span handler costs a query, next to a span handler that does nothing at all.

The engine is LlamaIndex's usual one, with a retriever and a model that take no time. Nothing is
judged while the clock runs.
"""

import asyncio

import pytest
from held_back import HeldBack
from interleaved import compare
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index.evaluation.ragaliq import RagaliqSpanHandler

CALLS, ROUNDS, PASSES = 4, 60, 5
QUESTION = "How long do refunds take?"
NODES = [
    NodeWithScore(node=TextNode(text=f"Document {n}. ".ljust(800, "x"), id_=str(n)), score=0.5)
    for n in range(4)
]

NONE, AGAIN = "no handler", "no handler, again"
EMPTY, ALL, NOTHING = "empty span handler", "ragaliq at 100 %", "ragaliq at 0 %"

# In shares of a call without a handler; the grace is for the noise of a machine in use.
AT_MOST = {ALL: 0.2, NOTHING: 0.1}
GRACE = 0.1


class ConstantRetriever(BaseRetriever):
    def _retrieve(self, query_bundle):
        return list(NODES)

    async def _aretrieve(self, query_bundle):
        return list(NODES)


class EmptyHandler(BaseSpanHandler):
    """The inherited bookkeeping replaced by nothing."""

    def span_enter(self, *args, **kwargs):
        pass

    def span_exit(self, *args, **kwargs):
        pass

    def span_drop(self, *args, **kwargs):
        pass

    def new_span(self, *args, **kwargs):
        pass

    def prepare_to_exit_span(self, *args, **kwargs):
        pass

    def prepare_to_drop_span(self, *args, **kwargs):
        pass


@pytest.fixture(params=["sync", "async"])
def call(request):
    """Ask the engine once while these handlers listen; the event loop is kept between calls."""
    dispatcher = get_dispatcher()
    before = dispatcher.span_handlers
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        engine = RetrieverQueryEngine.from_args(ConstantRetriever(), llm=MockLLM(max_tokens=8))

        def ask(handlers):
            dispatcher.span_handlers = handlers
            if request.param == "sync":
                engine.query(QUESTION)
            else:
                runner.run(engine.aquery(QUESTION))

        yield ask
        dispatcher.span_handlers = before
        asyncio.set_event_loop(None)


@pytest.mark.benchmark
def test_the_handler_costs_a_query_little(call, request, report):
    sampled, unsampled = HeldBack(1.0), HeldBack(0.0)
    observed, ignored = (RagaliqSpanHandler(each.monitor) for each in (sampled, unsampled))
    handlers = {NONE: [], AGAIN: [], EMPTY: [EmptyHandler()], ALL: [observed], NOTHING: [ignored]}
    variants = {name: (lambda given=given: call(given)) for name, given in handlers.items()}
    for variant in variants.values():
        variant()

    found = compare(variants, calls=CALLS, rounds=ROUNDS, passes=PASSES, between=sampled.catch_up)
    report(found.table(f"LlamaIndex, {request.node.callspec.params['call']}"))

    sampled.catch_up()
    runs = 1 + CALLS * ROUNDS * PASSES
    assert sampled.monitor.stats().outcomes == {"evaluated": runs}
    assert unsampled.monitor.stats().outcomes == {"sampled_out": runs}
    assert observed.errors == ignored.errors == 0
    for each in (sampled, unsampled):
        each.monitor.close(5)
    for variant, share in AT_MOST.items():
        assert found.added(variant) <= (share + GRACE) * found.base

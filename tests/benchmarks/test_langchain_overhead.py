"""What the handler costs a request, next to a handler that does nothing at all.

The chain is the one everybody writes, with a retriever and a model that take no time, so that the
handler's share is as large as it gets. Nothing is judged while the clock runs: the judge waits, and
the queue is long enough.
"""

import asyncio

import pytest
from held_back import HeldBack
from interleaved import compare
from langchain_core.callbacks import BaseCallbackHandler
from rag_chain import QUESTION, rag_chain

from langchain_ragaliq import RagaliqCallbackHandler

CALLS, ROUNDS, PASSES = 4, 80, 6

NONE, AGAIN = "no handler", "no handler, again"
EMPTY, ALL, NOTHING = "empty inline handler", "ragaliq at 100 %", "ragaliq at 0 %"
# At 0 % nothing has to be asked about a run; at any rate above, its trace and its id are.
RARELY = "ragaliq, left to chance"

# In multiples of what the empty inline handler adds.
AT_MOST = {ALL: 5.0, NOTHING: 3.0, RARELY: 3.0}
# In shares of a call without a handler: what an empty handler adds at the least, lest a lucky
# measurement of it make the bar impossible, and the grace for the noise of a machine in use.
EMPTY_AT_LEAST = 0.05
GRACE = 0.1


class EmptyHandler(BaseCallbackHandler):
    run_inline = True

    def on_chat_model_start(self, *args, **kwargs):
        """Without it LangChain would try `on_llm_start` instead."""


@pytest.fixture(params=["sync", "async"])
def call(request):
    """Call the chain once; the event loop is kept from call to call."""
    rag = rag_chain()
    if request.param == "sync":
        yield lambda callbacks: rag.invoke(QUESTION, {"callbacks": callbacks})
        return
    with asyncio.Runner() as runner:
        yield lambda callbacks: runner.run(rag.ainvoke(QUESTION, {"callbacks": callbacks}))


@pytest.mark.benchmark
def test_the_handler_costs_a_request_little_more_than_an_empty_one(call, request, report):
    held_back = sampled, unsampled, rarely = HeldBack(1.0), HeldBack(0.0), HeldBack(1e-9)
    observed, ignored, drawn = (RagaliqCallbackHandler(each.monitor) for each in held_back)
    callbacks = {
        NONE: [],
        AGAIN: [],
        EMPTY: [EmptyHandler()],
        ALL: [observed],
        NOTHING: [ignored],
        RARELY: [drawn],
    }
    variants = {name: (lambda given=given: call(given)) for name, given in callbacks.items()}
    for variant in variants.values():
        variant()

    found = compare(variants, calls=CALLS, rounds=ROUNDS, passes=PASSES, between=sampled.catch_up)
    report(found.table(f"LangChain, {request.node.callspec.params['call']}"))

    sampled.catch_up()
    runs = 1 + CALLS * ROUNDS * PASSES
    assert sampled.monitor.stats().outcomes == {"evaluated": runs}
    for each in (unsampled, rarely):
        assert each.monitor.stats().outcomes == {"sampled_out": runs}
    assert observed.errors == ignored.errors == drawn.errors == 0
    for each in held_back:
        each.monitor.close(5)
    empty = max(EMPTY_AT_LEAST * found.base, found.added(EMPTY))
    for variant, times in AT_MOST.items():
        assert found.added(variant) <= times * empty + GRACE * found.base

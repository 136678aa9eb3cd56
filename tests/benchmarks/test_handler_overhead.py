"""What the handlers cost a request, next to a handler that does nothing at all.

Nothing is judged while the clock runs: the judge waits, and the queue is long enough.
"""

from functools import partial

import asking
import pytest
from held_back import HeldBack
from interleaved import compare

from langchain_ragaliq import RagaliqCallbackHandler
from llama_index.evaluation.ragaliq import RagaliqSpanHandler

CALLS, ROUNDS, PASSES = 4, 70, 5

NONE, AGAIN, EMPTY = "no handler", "no handler, again", "empty handler"
ALL, NOTHING = "ragaliq at 100 %", "ragaliq at 0 %"
# At 0 % nothing has to be asked about a run; at any rate above, its trace and its id are.
RARELY = "ragaliq, left to chance"
RATES = {ALL: 1.0, NOTHING: 0.0, RARELY: 1e-9}

# In multiples of what LangChain's empty handler adds, and in shares of a query of LlamaIndex'.
IN_EMPTY_HANDLERS = {ALL: 5.0, NOTHING: 3.0, RARELY: 3.0}
IN_QUERIES = {ALL: 0.2, NOTHING: 0.1}
# In shares of a call without a handler: what an empty handler adds at the least, lest a lucky
# measurement of it make the bar impossible, and the grace for the noise of a machine in use.
EMPTY_AT_LEAST = 0.05
GRACE = 0.1


def allowed(found, empty=EMPTY):
    """Seconds that a handler of ragaliq's may add to a call of LangChain's chain, by variant."""
    one = max(EMPTY_AT_LEAST * found.base, found.added(empty))
    return {name: times * one + GRACE * found.base for name, times in IN_EMPTY_HANDLERS.items()}


@pytest.mark.benchmark
@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("framework", ["LangChain", "LlamaIndex"])
def test_a_handler_costs_a_request_little(framework, mode, report):
    held_back = {name: HeldBack(rate) for name, rate in RATES.items()}
    asks, handler, empty = {
        "LangChain": (asking.langchain, RagaliqCallbackHandler, asking.EmptyCallbackHandler),
        "LlamaIndex": (asking.llama_index, RagaliqSpanHandler, asking.EmptySpanHandler),
    }[framework]
    ours = {name: handler(each.monitor) for name, each in held_back.items()}
    listening = {NONE: [], AGAIN: [], EMPTY: [empty()]}
    listening |= {name: [each] for name, each in ours.items()}
    with asks(mode) as ask:
        found = compare(
            {name: partial(ask, handlers) for name, handlers in listening.items()},
            calls=CALLS,
            rounds=ROUNDS,
            passes=PASSES,
            between=held_back[ALL].catch_up,
        )
    report(found.table(f"{framework}, {mode}"))

    for name, each in held_back.items():
        each.end(found.calls)
        assert ours[name].errors == 0
    at_most = allowed(found)
    if framework == "LlamaIndex":
        at_most = {name: (share + GRACE) * found.base for name, share in IN_QUERIES.items()}
    for name, seconds in at_most.items():
        assert found.added(name) <= seconds

"""The cost of an event does not grow with an application's state: `make bench ARGS="-k state"`."""

import asyncio
import gc
import time
from statistics import median, quantiles
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

from langchain_ragaliq import RagaliqCallbackHandler
from llama_index.evaluation.ragaliq import RagaliqSpanHandler
from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge

pytestmark = pytest.mark.benchmark

NODES, ROUNDS = 6, 15


class State(TypedDict, total=False):
    question: str
    held: Any
    answer: str


def records(count):
    return [
        {"id": n, "name": f"name {n}", "price": n * 1.5, "tags": ["a", "b"]} for n in range(count)
    ]


HELD = {
    "nothing": lambda: None,
    "1,000 records": lambda: records(1_000),
    "10,000 records": lambda: records(10_000),
    "10,000 records by id": lambda: {str(each["id"]): each for each in records(10_000)},
    "10,000 texts": lambda: [f"The text number {n} of many." for n in range(10_000)],
    "10,000 records in an object": lambda: {"rows": records(10_000)},
    "20 embeddings": lambda: [[n * 0.001 for n in range(1_536)] for _ in range(20)],
}


def graph():
    made = StateGraph(State)
    before = START
    for number in range(NODES):
        made.add_node(f"n{number}", lambda state: {"answer": "Refunds take five days."})
        made.add_edge(before, f"n{number}")
        before = f"n{number}"
    made.add_edge(before, END)
    return made.compile()


def seconds(app, held, callbacks):
    begun = time.perf_counter()
    app.invoke({"question": "How long do refunds take?", "held": held}, {"callbacks": callbacks})
    return time.perf_counter() - begun


def test_a_large_state_adds_less_than_a_millisecond_to_a_run():
    app, monitor = graph(), Monitor(judge=ScriptedJudge())
    handler = RagaliqCallbackHandler(monitor)
    for _ in range(ROUNDS):  # first calls load what loads on first use
        seconds(app, None, [handler])
    added = {}
    for name, make in HELD.items():
        held = make()
        with_it, without = [], []
        for _ in range(ROUNDS):
            without.append(seconds(app, held, []))
            with_it.append(seconds(app, held, [handler]))
        added[name] = (median(with_it) - median(without)) * 1e3
    monitor.close(5)
    assert max(added.values()) - added["nothing"] < 1.0, added


# LlamaIndex: processor time inside the handler, since its workflows copy states for milliseconds.


class TimedHandler(RagaliqSpanHandler):
    """Adds up the processor time of its events, in seconds."""


def timed(name):
    def event(self, *args, **kwargs):
        begun = time.thread_time()
        try:
            return getattr(RagaliqSpanHandler, name)(self, *args, **kwargs)
        finally:
            vars(self)["spent"] += time.thread_time() - begun

    return event


for method in ("span_enter", "span_exit", "span_drop", "handle"):
    setattr(TimedHandler, method, timed(method))


class Handed(Event):
    number: int
    held: Any


class Steps(Workflow):
    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> Handed:
        await ctx.store.set("held", ev.held)
        return Handed(number=1, held=ev.held)

    @step
    async def go_on(self, ev: Handed) -> Handed | StopEvent:
        if ev.number < NODES:
            return Handed(number=ev.number + 1, held=ev.held)
        return StopEvent(result={"answer": "Refunds take five days.", "held": ev.held})


class Shelf(BaseRetriever):
    """Finds so many nodes."""

    def __init__(self, count):
        super().__init__()
        metadata = {"file": "rules.pdf"}
        nodes = (TextNode(text=f"Rule {n} says it.", metadata=metadata) for n in range(count))
        self.nodes = [NodeWithScore(node=node, score=0.5) for node in nodes]

    def _retrieve(self, query_bundle):
        return self.nodes


@pytest.fixture
def timed_handler():
    monitor = Monitor(judge=ScriptedJudge())
    handler = TimedHandler(monitor)
    vars(handler)["spent"] = 0.0
    handler.listen()
    gc.disable()  # whose events start a collection is chance
    yield handler
    gc.enable()
    handler.stop_listening()
    monitor.close(5)
    assert handler.errors == 0


def spent(handler, run):
    """Seconds that a run takes, and those of them inside the handler."""
    vars(handler)["spent"], begun = 0.0, time.thread_time()
    run()
    return time.thread_time() - begun, handler.spent


def test_a_workflows_large_state_adds_less_than_a_millisecond_to_a_run(timed_handler, report):
    added = {}
    for name, make in HELD.items():
        held = make()

        async def run(held=held):
            await Steps(timeout=60).run(question="How long do refunds take?", held=held)

        found = [spent(timed_handler, lambda run=run: asyncio.run(run()))[1] for _ in range(ROUNDS)]
        added[name] = quantiles(found, n=4)[0] * 1e3  # the undisturbed ones
    report(f"{name}: {each:.2f} ms in the handler" for name, each in added.items())
    assert max(added.values()) - added["nothing"] < 1.0, added


def test_500_nodes_take_no_larger_share_of_a_query_than_five(timed_handler, report):
    shares = {}
    for count in (5, 50, 500):
        engine = RetrieverQueryEngine.from_args(Shelf(count), llm=MockLLM(max_tokens=5))
        runs = [
            spent(timed_handler, lambda engine=engine: engine.query("Who says it?"))
            for _ in range(ROUNDS)
        ]
        shares[count] = median(inside / whole for whole, inside in runs)
    report(f"{count} nodes: {share:.1%} of a query" for count, share in shares.items())
    assert shares[500] < shares[5] + 0.1, shares

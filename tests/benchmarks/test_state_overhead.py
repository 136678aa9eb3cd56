"""The cost of an event does not grow with a graph's state: `make bench ARGS="-k state"`."""

import time
from statistics import median
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from langchain_ragaliq import RagaliqCallbackHandler
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

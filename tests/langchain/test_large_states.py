"""A state of any size and kind passes the handler, which looks at a few values of it."""

from collections.abc import Mapping
from itertools import count, repeat
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph

from langchain_ragaliq import RagaliqCallbackHandler
from langchain_ragaliq.reading import StateReader, documents_in


class Endless(list):
    """A list of rows that are made as they are asked for."""

    def __iter__(self):
        return repeat({"row": 1})

    def __len__(self):
        return 10**9

    def __getitem__(self, at):
        return {"row": at}


class EndlessTable(dict):
    """A table whose rows are made as they are asked for."""

    def __iter__(self):
        return map(str, count())

    def keys(self):
        return iter(self)

    def values(self):
        return repeat({"row": 1})

    def items(self):
        return ((str(n), {"row": n}) for n in count())

    def __len__(self):
        return 10**9


class Shelf(Mapping):
    """A mapping of the application's own, without an end."""

    def __getitem__(self, key):
        return {"row": key}

    def __iter__(self):
        return map(str, count())

    def __len__(self):
        return 10**9


class Counted(dict):
    """A record that counts how often it was looked at."""

    looked_at = 0

    def values(self):
        Counted.looked_at += 1
        return super().values()


def repr_of_class(value):
    return type(value).__name__


class State(TypedDict, total=False):
    question: str
    held: Any
    answer: str


@pytest.mark.parametrize(
    "held",
    [
        *(Endless(), [Endless()], {"rows": Endless()}, EndlessTable(), [EndlessTable()]),
        *(Shelf(), {"shelf": Shelf()}, count(), map(str, count()), range(10**12)),
    ],
    ids=repr_of_class,
)
def test_a_list_without_an_end_is_not_read(held, watch, invoke):
    graph = StateGraph(State)
    graph.add_node("one", lambda state: {"held": held, "answer": "Five days."})
    graph.add_edge(START, "one")
    graph.add_edge("one", END)
    invoke(graph.compile(), {"question": "How long?", "held": held}, watch.config)
    assert watch.only[2] == "Five days."


def test_a_thousand_records_are_not_walked_through():
    Counted.looked_at = 0
    state = {"rows": [Counted(id=n, name="x") for n in range(1_000)]}
    reader = StateReader()
    for _ in range(20):  # nodes
        assert reader.documents_by_key(state) == {}
    assert 0 < Counted.looked_at < 40


def test_documents_are_read_once_however_many_nodes_are_given_them():
    reader, documents = StateReader(), [Document("Refunds take five days.", id="r1")]
    first = reader.documents_by_key({"docs": documents})["docs"]
    assert reader.documents_by_key({"docs": documents})["docs"] is first
    documents.append(Document("They are paid to the card."))
    assert [p.text for p in reader.documents_by_key({"docs": documents})["docs"]] == [
        "Refunds take five days.",
        "They are paid to the card.",
    ]


@pytest.mark.parametrize(
    "value",
    [
        [Document("d")],
        [(Document("d"), 0.5)],
        ([Document("d")], [Document("e")]),
        {"a": {"hits": [Document("d")]}},
        [{"page_content": "d"}],
        [{"title": "t", "content": "d"}],
    ],
)
def test_documents_in_a_few_values_are_found(value):
    assert documents_in(value)[0].text == "d"


@pytest.mark.parametrize(
    "value", ["d", 1.5, ["d"], [[0.1] * 1_536], {"a": 1}, [{"id": 1}], object()]
)
def test_other_values_hold_none(value):
    assert documents_in(value) is None


class EndlessHits(list):
    """A list of documents that are found as they are asked for."""

    def __iter__(self):
        return repeat(Document("Refunds take five days."))


@pytest.mark.timeout(30)
@pytest.mark.parametrize("key", ["context", "answer"])
def test_a_list_of_documents_without_an_end_does_not_hold_up_the_request(key):
    handler = RagaliqCallbackHandler(judge="local")
    output = {"context": [], "answer": "Refunds take nine days."} | {key: EndlessHits()}
    config = {"callbacks": [handler]}
    assert RunnableLambda(lambda _: output).invoke("How long?", config)[key] is output[key]
    assert handler.monitor.stats().started == 1
    handler.monitor.close()


@pytest.mark.parametrize("place", ["output", "answer", "state", "input"])
def test_a_text_of_a_class_of_its_own_is_read_without_its_methods(place):
    def fail(*args):
        raise AssertionError("the application's code was run")

    methods = dict.fromkeys(("__str__", "__len__", "__eq__", "strip", "startswith"), fail)
    text = type("Text", (str,), {**methods, "__hash__": str.__hash__})("Refunds take five days.")
    documents = [Document("Refunds take five days.")]
    made = {"context": documents, "answer": "Refunds take five days.", "note": "none"}
    made |= {"answer": text} if place == "answer" else {"note": text} if place == "state" else {}
    fetch = RunnableLambda(lambda given: {**given, "context": documents})
    chain = fetch | RunnableLambda(lambda given: text if place == "output" else made)
    handler = RagaliqCallbackHandler(judge="local")
    given = {"question": "How long?", "note": text if place == "input" else "none"}
    output = chain.invoke(given, {"callbacks": [handler]})
    assert output is (text if place == "output" else made)
    assert handler.monitor.flush(30)
    stats = handler.monitor.stats()
    assert (handler.errors, stats.incomplete) == (0, {})
    handler.monitor.close()

"""Line 7: context in states, inputs and results of tools is found, or the case says why not."""

from __future__ import annotations

import json
from datetime import date
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_parts import ANSWER, HOURS, PARKING, REFUNDS, Answer, Finding, graph, model, rag
from langgraph.func import entrypoint, task
from langgraph.types import Command
from rag_parts import PROMPT, QUESTION, calling, joined


def test_a_text_in_the_state_is_the_context(watch):
    def search(state):
        return {"context": f"{REFUNDS}\n{HOURS}"}

    def answer(state):
        asked = f"{state['context']}\n{state['question']}"
        return {"generation": model().invoke(asked).text}

    graph(search, answer).invoke({"question": QUESTION}, watch.config)
    assert watch.only.context_texts == [f"{REFUNDS}\n{HOURS}"]


def test_documents_that_are_the_input_are_the_context(watch):
    chain = {
        "context": lambda given: joined(given["papers"]),
        "question": lambda given: given["question"],
    } | PROMPT | model()  # fmt: skip
    given = {"question": QUESTION, "papers": [Document(REFUNDS, id="r")]}
    chain.invoke(given, watch.config)
    assert (watch.only.context_texts, watch.only.chunk_ids) == ([REFUNDS], ["r"])


@pytest.mark.parametrize(
    "hold",
    [
        lambda found: {"hits": [(document, 0.7) for document in found]},
        lambda found: {"hits": {"store": {"first": found[:1], "rest": found[1:]}}},
        lambda found: Command(update={"hits": found}),
    ],
    ids=["tuples with scores", "nested dictionaries", "a command"],
)
def test_documents_are_found_wherever_a_state_holds_them(watch, hold):
    class Hits(TypedDict, total=False):
        question: str
        hits: Any
        generation: str

    def search(state):
        # As a vector store is asked: no retriever reports anything.
        return hold([Document(REFUNDS, id="r"), Document(HOURS, id="h")])

    def answer(state):
        return {"generation": model().invoke(f"{REFUNDS}\n{HOURS}\n{state['question']}").text}

    graph(search, answer, state=Hits, output=Answer).invoke({"question": QUESTION}, watch.config)
    assert (watch.only.context_texts, watch.only.chunk_ids) == ([REFUNDS, HOURS], ["r", "h"])
    assert watch.only.sources.context == "prompt"


@pytest.mark.parametrize("held", ["bare", "under a key"])
def test_a_plain_steps_list_of_texts_is_found_too(watch, held):
    @task
    def look(question):
        texts = [REFUNDS, HOURS, PARKING]
        return texts if held == "bare" else {"hits": texts, "ids": [1, 2]}

    @entrypoint()
    def answer(given):
        found = look(given["question"]).result()
        texts = (found if held == "bare" else found["hits"])[:2]
        return {"answer": model().invoke("\n".join([*texts, given["question"]])).text}

    answer.invoke({"question": QUESTION}, watch.config)
    assert watch.only.context_texts == [REFUNDS, HOURS]


LISTS = [
    {"query": "x", "results": [{"url": "a", "content": REFUNDS}, {"content": HOURS}]},
    {"results": {"documents": [{"page_content": REFUNDS}, {"text": HOURS}]}},
    [REFUNDS, HOURS],
]
DOCUMENTS = [
    [Document(REFUNDS, metadata={"at": date(2026, 1, 2)}), Document(HOURS, id='it\'s "h"')],
    [(Document(REFUNDS), 0.9), (Document(HOURS), 0.5)],
]


@pytest.mark.parametrize(
    "said", [*map(json.dumps, LISTS), *map(str, LISTS), *LISTS, *map(str, DOCUMENTS), *DOCUMENTS]
)
def test_the_hits_that_a_tool_lists_are_the_context(watch, said):
    @tool
    def search(query: str) -> Any:
        """Searches."""
        return said

    agent = create_agent(model(calling("search", query="refunds"), ANSWER), [search])
    agent.invoke({"messages": [("user", QUESTION)]}, watch.config)
    assert watch.only.context_texts == [REFUNDS, HOURS]


@pytest.mark.parametrize(
    "said",
    [
        '{"days": 5, "rows": [[1, 2]]}',
        "[Document(page_content='cut",
        "['five days', 'written by hand \\d']",
        f"{['five days'] * 1000}",
    ],
    ids=lambda said: said[:12],
)
def test_what_lists_nothing_or_too_much_is_the_context_as_it_is(watch, said):
    @tool
    def look_up(query: str) -> str:
        """Looks up."""
        return said

    agent = create_agent(model(calling("look_up", query="refunds"), ANSWER), [look_up])
    agent.invoke({"messages": [("user", QUESTION)]}, watch.config)
    assert watch.only.context_texts == [said]


def test_without_a_context_the_case_and_the_handler_say_why(watch):
    rag(Finding() | (lambda found: [])).invoke(QUESTION, watch.config)
    rag(Finding(texts=[])).invoke(QUESTION, watch.config)
    model().pipe(StrOutputParser()).invoke(QUESTION, watch.config)
    assert [case.sources.no_context for case in watch.cases] == [
        "not_in_prompt",
        "nothing_found",
        "nothing_retrieved",
    ]
    stats = watch.monitor.stats()
    assert stats.without_context == {
        "not_in_prompt": 1, "nothing_found": 1, "nothing_retrieved": 1
    }  # fmt: skip
    explained = watch.handler.explain(watch.cases[0].id)
    assert (explained.outcome, explained.sources.no_context) == ("submitted", "not_in_prompt")

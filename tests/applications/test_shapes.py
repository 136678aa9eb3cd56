"""Questions, contexts and answers in odd places: lines 4 to 7."""

import json
from datetime import date
from typing import Any, NamedTuple, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_parts import ANSWER, HOURS, PARKING, REFUNDS, Answer, Finding, graph, model, rag
from langgraph.func import entrypoint, task
from langgraph.graph import MessagesState
from langgraph.types import Command
from pydantic import BaseModel
from rag_parts import PROMPT, QUESTION, calling, joined


class Shape(NamedTuple):
    """One application and the texts of its case; it answers `QUESTION` with `ANSWER`."""

    make: Any
    asked: Any = QUESTION
    texts: list[str] = [REFUNDS, HOURS]  # noqa: RUF012 - read only
    ids: list[str] | None = None


class Cited(BaseModel):
    """An answer with its sources."""

    answer: str
    sources: list[str]


class Nested(BaseModel):
    """An answer further inside."""

    result: Cited
    confidence: float


CITED = Cited(answer=ANSWER, sources=["0.md"])


def returning(made):
    return lambda: rag(Finding()) | (lambda _: made)


def wished(given):
    return {"reply": rag(Finding()).invoke(given["wish"]).text}


class ReportState(MessagesState):
    final_report: str


def report(state):
    return {"final_report": (rag(Finding()) | StrOutputParser()).invoke(QUESTION)}


class Reranking(BaseRetriever):
    """Asks another retriever without passing callbacks on, and keeps the first."""

    def _get_relevant_documents(self, query, *, run_manager):
        return Finding().invoke(query)[:1]


def fused():
    def fuse(lists):
        ranked = [(document, 0.5) for found in lists.values() for document in found]
        return [pair for pair in ranked if pair[0].page_content != HOURS]

    search = {"a": Finding(), "b": Finding(texts=[PARKING, HOURS])}
    return rag(search | RunnableLambda(fuse) | (lambda pairs: [d for d, _ in pairs]))


def remembering():
    memories = Finding(texts=["The user once asked about parking in the yard."])

    def rewrite(given):
        asked = f"{joined(memories.invoke(given['question']))} {given['question']}"
        return model("refund duration").invoke(asked).text

    context = RunnableLambda(rewrite) | Finding() | joined
    return RunnablePassthrough.assign(context=context) | PROMPT | model()


def text_in_a_state():
    def search(state):
        return {"context": f"{REFUNDS}\n{HOURS}"}

    def answer(state):
        return {"generation": model().invoke(f"{state['context']}\n{state['question']}").text}

    return graph(search, answer)


def papers():
    return (
        RunnablePassthrough.assign(context=lambda given: joined(given["papers"])) | PROMPT | model()
    )


class Hits(TypedDict, total=False):
    question: str
    hits: Any
    generation: str


def holding(hold):
    """As a vector store is asked: no retriever reports anything."""

    def search(state):
        return hold([Document(REFUNDS, id="r"), Document(HOURS, id="h")])

    def answer(state):
        return {"generation": model().invoke(f"{REFUNDS}\n{HOURS}\n{state['question']}").text}

    return Shape(
        lambda: graph(search, answer, state=Hits, output=Answer),
        {"question": QUESTION},
        ids=["r", "h"],
    )


def listing_task(held):
    @task
    def look(question):
        return held

    @entrypoint()
    def answer(given):
        look(given["question"]).result()
        return {"answer": model().invoke("\n".join([REFUNDS, HOURS, given["question"]])).text}

    return Shape(lambda: answer, {"question": QUESTION})


def searching(said):
    @tool
    def search(query: str) -> Any:
        """Searches."""
        return said

    return create_agent(model(calling("search", query="refunds"), ANSWER), [search])


ASK = {"messages": [HumanMessage(QUESTION)]}
LISTS = [
    {"query": "x", "results": [{"url": "a", "content": REFUNDS}, {"content": HOURS}]},
    {"results": {"documents": [{"page_content": REFUNDS}, {"text": HOURS}]}},
    [REFUNDS, HOURS],
]
DOCUMENTS = [
    [Document(REFUNDS, metadata={"at": date(2026, 1, 2)}), Document(HOURS, id='it\'s "h"')],
    [(Document(REFUNDS), 0.9), (Document(HOURS), 0.5)],
]
HITS = [*map(json.dumps, LISTS), *map(str, LISTS), *LISTS, *map(str, DOCUMENTS), *DOCUMENTS]
NO_LISTS = [
    '{"days": 5, "rows": [[1, 2]]}',
    "[Document(page_content='cut",
    "['five days', 'written by hand \\d']",
    f"{['five days'] * 1000}",
]

SHAPES = {
    "an answer in an object": Shape(returning(CITED)),
    "an answer in an object's object": Shape(returning(Nested(result=CITED, confidence=0.9))),
    "an answer with citations": Shape(returning({"answer": {"text": ANSWER, "citations": [1]}})),
    "an answer under other keys": Shape(returning({"output": {"result": CITED}, "took": 3.5})),
    "an unknown key": Shape(lambda: RunnableLambda(wished), {"wish": QUESTION}),
    "an unknown key among others": Shape(
        lambda: RunnableLambda(wished), {"wish": QUESTION, "tenant": "acme", "user_id": "u1"}
    ),
    "a report beside messages": Shape(lambda: graph(report, state=ReportState), ASK),
    "what a reranking retriever rejected": Shape(lambda: rag(Reranking()), texts=[REFUNDS]),
    "what a fusion passes on": Shape(fused, texts=[REFUNDS, PARKING]),
    "memories that a query writer was shown": Shape(remembering, {"question": QUESTION}),
    "a text in the state": Shape(
        text_in_a_state, {"question": QUESTION}, texts=[f"{REFUNDS}\n{HOURS}"]
    ),
    "documents that are the input": Shape(
        papers, {"question": QUESTION, "papers": [Document(REFUNDS, id="r")]}, [REFUNDS], ["r"]
    ),
    "tuples with scores": holding(lambda found: {"hits": [(each, 0.7) for each in found]}),
    "nested dictionaries": holding(
        lambda found: {"hits": {"store": {"first": found[:1], "rest": found[1:]}}}
    ),
    "a command": holding(lambda found: Command(update={"hits": found})),
    "a step's list": listing_task([REFUNDS, HOURS, PARKING]),
    "a step's list under a key": listing_task({"hits": [REFUNDS, HOURS, PARKING], "ids": [1, 2]}),
    **{
        f"hits that a tool lists {place}": Shape(lambda said=said: searching(said), ASK)
        for place, said in enumerate(HITS)
    },
    **{
        f"what lists nothing or too much {place}": Shape(
            lambda said=said: searching(said), ASK, [said]
        )
        for place, said in enumerate(NO_LISTS)
    },
}


@pytest.mark.parametrize("name", SHAPES)
def test_an_application_gives_this_case(watch, name):
    shape = SHAPES[name]
    shape.make().invoke(shape.asked, watch.config)
    case = watch.only
    assert (case.query, case.context_texts, case.response) == (QUESTION, shape.texts, ANSWER)
    assert case.sources.context == "prompt"
    assert shape.ids in (None, case.chunk_ids)


def test_an_agents_structured_response_is_the_text_a_person_reads(watch):
    agent = create_agent(
        model(calling("Cited", answer=ANSWER, sources=["0.md"])), [], response_format=Cited
    )
    output = agent.invoke({"messages": [("user", f"{REFUNDS} {QUESTION}")]}, watch.config)
    assert output["structured_response"] == CITED
    assert watch.only.response == ANSWER
    assert watch.only.sources.answer == "output.structured_response.answer"


def test_what_a_chain_returns_under_an_unknown_key_is_no_question(watch):
    RunnableLambda(lambda given: {"reply": model().invoke("x").text}).invoke(3, watch.config)
    assert watch.cases == []
    assert dict(watch.monitor.stats().incomplete) == {"no_question": 1}


def test_without_a_context_the_case_and_the_handler_say_why(watch):
    rag(Finding() | (lambda found: [])).invoke(QUESTION, watch.config)
    rag(Finding(texts=[])).invoke(QUESTION, watch.config)
    model().pipe(StrOutputParser()).invoke(QUESTION, watch.config)
    reasons = ["not_in_prompt", "nothing_found", "nothing_retrieved"]
    assert [case.sources.no_context for case in watch.cases] == reasons
    assert watch.monitor.stats().without_context == dict.fromkeys(reasons, 1)
    explained = watch.handler.explain(watch.cases[0].id)
    assert (explained.outcome, explained.sources.no_context) == ("submitted", "not_in_prompt")

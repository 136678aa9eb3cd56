"""Parts of LangChain and LangGraph applications: what is found, a model that replies, graphs."""

import json
from typing import TypedDict

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langgraph.graph import END, START, StateGraph
from pydantic import Field
from rag_parts import PROMPT, joined
from rag_parts import model as scripted

ANSWER = "It takes five days until the money is back."
REFUNDS = "Refunds take five days after the parcel has arrived."
HOURS = "The shop opens at nine and closes at six."
PARKING = "Parking costs two euros for every hour."


def model(*replies):
    """A chat model that gives these replies in turn, `ANSWER` if none are given."""
    return scripted(*replies or (ANSWER,))


class Finding(BaseRetriever):
    """Finds these texts, whatever is asked."""

    texts: list[str] = Field(default_factory=lambda: [REFUNDS, HOURS])

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(text, id=f"id-{n}", metadata={"source": f"{n}.md", "page": n})
            for n, text in enumerate(self.texts)
        ]


def rag(source, llm=None):
    return (
        {"context": source | joined, "question": RunnablePassthrough()} | PROMPT | (llm or model())
    )


class State(TypedDict, total=False):
    question: str
    documents: list
    context: str
    generation: str


class Answer(TypedDict):
    generation: str


def graph(*nodes, state=State, **options):
    builder = StateGraph(state, output_schema=options.pop("output", state))
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    builder.add_edge(nodes[-1].__name__, END)
    return builder.compile(**options)


def retrieve(state):
    return {"documents": Finding().invoke(state["question"])}


def generate(state):
    asked = {"context": joined(state["documents"]), "question": state["question"]}
    return {"generation": (PROMPT | model() | StrOutputParser()).invoke(asked)}


def thread(watch, name="t-1"):
    return {**watch.config, "configurable": {"thread_id": name}}


def judging(messages):
    """Answers ragaliq's prompts about the only claim."""
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    verdict = {
        "claim_id": "c1",
        "verdict": "CONTRADICTED",
        "evidence": REFUNDS,
        "reason": "It is five.",
        "chunk_ids": [0],
        "confidence": 0.9,
    }
    reply = {"claims": [ANSWER], "verdicts": [verdict], "score": 0.9, "reasoning": "Good."}
    return AIMessage(json.dumps(reply), usage_metadata=usage)

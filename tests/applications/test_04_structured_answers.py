"""Line 4: the text inside a structured answer is judged."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnablePassthrough
from langchain_parts import ANSWER, HOURS, REFUNDS, Finding, model
from pydantic import BaseModel
from rag_parts import PROMPT, QUESTION, calling, joined


class Cited(BaseModel):
    """An answer with its sources."""

    answer: str
    sources: list[str]


class Nested(BaseModel):
    """An answer further inside."""

    result: Cited
    confidence: float


CITED = Cited(answer=ANSWER, sources=["0.md"])


def test_an_agents_structured_response_is_the_text_a_person_reads(watch):
    agent = create_agent(
        model(calling("Cited", answer=ANSWER, sources=["0.md"])), [], response_format=Cited
    )
    output = agent.invoke({"messages": [("user", f"{REFUNDS} {QUESTION}")]}, watch.config)
    assert output["structured_response"] == CITED
    assert watch.only.response == ANSWER
    assert watch.only.sources.answer == "output.structured_response.answer"


@pytest.mark.parametrize(
    "made",
    [
        CITED,
        Nested(result=CITED, confidence=0.9),
        {"answer": {"text": ANSWER, "citations": [1, 2]}},
        {"response": CITED},
        {"output": {"result": {"answer": ANSWER}}, "took": 3.5},
    ],
)
def test_an_answer_inside_an_object_is_found_before_anything_is_made_json(watch, made):
    chain = {"context": Finding() | joined, "question": RunnablePassthrough()} | PROMPT | model()
    (chain | (lambda _: made)).invoke(QUESTION, watch.config)
    assert (watch.only.response, watch.only.context_texts) == (ANSWER, [REFUNDS, HOURS])

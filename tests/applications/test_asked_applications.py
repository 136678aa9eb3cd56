"""`evaluate(app, questions)`: an application is asked, and scored by what its model was shown."""

from functools import partial

import pytest
from langchain.agents import create_agent
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.tools import FunctionTool
from llama_index_parts import REFUNDS, Search, agent, engine, memory
from llama_index_parts import model as llama_model
from pydantic import BaseModel
from rag_parts import ScriptedChatModel, calling, rag_chain

from ragaliq import ConfigurationError, RAGTestCase, evaluate

QUESTIONS = ["How long do refunds take?", "Who pays for refunds?"]
WRONG = "Refunds take nine days."
PROMPT = PromptTemplate.from_template("{topic} {tone}")


@tool
def search(query: str) -> str:
    """Searches."""
    return REFUNDS


def langchain_model(*replies):
    return ScriptedChatModel(replies=list(replies))


def langchain_agent():
    said = [calling("search", query="refunds"), REFUNDS, calling("search", query="x"), WRONG]
    return create_agent(langchain_model(*said), [search])


def llama_agent():
    call = ("policy", {"topic": "refunds"})

    def policy(topic: str) -> str:
        return REFUNDS

    return agent(FunctionTool.from_defaults(policy), llm=llama_model(call, REFUNDS, call, WRONG))


def answering_dictionaries():
    chain = rag_chain(llm=langchain_model(REFUNDS, WRONG))
    asked = RunnableLambda(lambda given: given["input"]) | chain
    return RunnablePassthrough.assign(answer=asked).with_types(input_type=Asked)


class Asked(BaseModel):
    input: str


APPLICATIONS = {
    "chain": lambda: rag_chain(llm=langchain_model(REFUNDS, WRONG)),
    "dictionaries": answering_dictionaries,
    "agent": langchain_agent,
    "query engine": lambda: engine(REFUNDS, llm=llama_model(REFUNDS, WRONG)),
    "chat engine": lambda: ContextChatEngine.from_defaults(
        retriever=Search(REFUNDS), llm=llama_model(REFUNDS, WRONG), memory=memory()
    ),
    "LlamaIndex's agent": llama_agent,
}


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
@pytest.mark.parametrize("made", APPLICATIONS)
def test_an_application_is_asked_and_scored(made):
    run = evaluate(APPLICATIONS[made](), QUESTIONS, metrics=["faithfulness"], concurrency=1)
    assert run.unanswered == ()
    assert [each.case.id for each in run] == ["question 1", "question 2"]
    assert [each.case.query for each in run] == QUESTIONS
    assert [each.results["faithfulness"].score for each in run] == [1.0, 0.0]
    assert all(REFUNDS in each.case.context_texts for each in run)


def test_what_a_question_holds_stays_with_its_answer():
    given = RAGTestCase(
        id="refunds-1",
        query=QUESTIONS[0],
        response="",
        expected_answer=REFUNDS,
        tags=["refunds"],
        metadata={"team": "shop"},
    )
    [evaluation] = evaluate(rag_chain(llm=langchain_model(REFUNDS)), [given])
    case = evaluation.case
    assert (case.id, case.expected_answer, case.tags) == ("refunds-1", REFUNDS, ["refunds"])
    assert (case.response, case.metadata["team"]) == (REFUNDS, "shop")


def test_questions_without_an_answer_are_named_and_the_others_scored():
    replies = langchain_model(ConnectionError("down"), REFUNDS)
    run = evaluate(rag_chain(llm=replies), QUESTIONS, metrics=["faithfulness"], concurrency=1)
    assert [each.case.id for each in run] == ["question 2"]
    [unanswered] = run.unanswered
    assert unanswered[:2] == ("question 1", "ConnectionError")
    assert ".py, line " in unanswered.place


async def answer(question):
    return RAGTestCase(query=question, context=[REFUNDS], response=REFUNDS)


class Shop:
    async def __call__(self, question):
        return await answer(question)


@pytest.mark.parametrize(
    "app", [answer, Shop(), partial(answer)], ids=["function", "object", "partial"]
)
def test_whatever_is_called_with_a_question_may_return_cases(app):
    run = evaluate(app, QUESTIONS, metrics=["faithfulness"])
    assert [each.case.query for each in run] == QUESTIONS


@pytest.mark.parametrize(
    ("app", "said"),
    [
        (3, "an application of type int cannot be asked"),
        (lambda question: "yes", "RunnableLambda"),
        (PROMPT | langchain_model(REFUNDS), "which of them is the question"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_remedy(app, said):
    with pytest.raises(ConfigurationError, match=said):
        evaluate(app, QUESTIONS)

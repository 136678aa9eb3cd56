"""Runs that fail, refuse, find nothing, are evaluated inside, or cite sources of the provider's."""

from contextlib import suppress

from harness import app
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, CitationBlock, TextBlock
from llama_index.core.evaluation import (
    CorrectnessEvaluator,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
)
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import QueryBundle
from llama_index_fakes import Shelf, call, default_model, index, memory, talker, writer

import ragaliq

SKI = "The lift runs from 9 to 16 if the wind is below 60 km/h."


def engine(*texts, llm, **settings):
    return RetrieverQueryEngine.from_args(Shelf(*texts), llm=llm, **settings)


@app("a model that fails", status="errored")
def model_fails():
    def fail(prompt):
        raise TimeoutError("overloaded")

    with suppress(TimeoutError):
        engine(SKI, llm=writer(fail)).query("When does the lift run?")


@app("a retriever that fails", status="errored")
def retriever_fails():
    class Down(BaseRetriever):
        def _retrieve(self, query_bundle):
            raise ConnectionError("store unreachable")

    with suppress(ConnectionError):
        RetrieverQueryEngine.from_args(Down(), llm=writer("never asked")).query(
            "When does the lift run?"
        )


@app("nothing is found", status="no_answer")
def nothing_found():
    engine(llm=writer("never asked")).query("When does the lift run?")


@app("an empty reply", status="no_answer")
def empty_reply():
    engine(SKI, llm=writer("")).query("When does the lift run?")


@app(
    "a refusal",
    question="What does a day ticket cost?",
    answer="I don't know what a day ticket costs.",
    chunks=[SKI],
)
def refusal():
    engine(SKI, llm=talker("I don't know what a day ticket costs.")).query(
        "What does a day ticket cost?"
    )


@app(
    "a model that fails once and is asked again",
    question="When does the lift run?",
    answer="From 9 to 16.",
    chunks=[SKI],
)
def model_retried():
    state = {"calls": 0}

    def flaky(prompt):
        state["calls"] += 1
        if state["calls"] == 1:
            raise TimeoutError("overloaded")
        return "From 9 to 16."

    class Patient(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            nodes = Shelf(SKI).retrieve(query_str)
            for _ in range(3):
                try:
                    return self.llm.complete(f"{nodes[0].text}\n{query_str}").text
                except TimeoutError:
                    continue
            return "Sorry."

    Patient(llm=writer(flaky)).query("When does the lift run?")


@app(
    "a fallback to another engine when the first fails",
    question="When does the lift run?",
    answer="The lift runs from 9 on.",
    chunks=[SKI],
    absent=["Archive of 1988: lift runs until 14."],
)
def fallback():
    def fail(prompt):
        raise TimeoutError("overloaded")

    class Fallback(CustomQueryEngine):
        first: object
        second: object

        def custom_query(self, query_str):
            try:
                return self.first.query(query_str)
            except TimeoutError:
                return self.second.query(query_str)

    Fallback(
        first=engine("Archive of 1988: lift runs until 14.", llm=writer(fail)),
        second=engine(SKI, llm=writer("The lift runs from 9 on.")),
    ).query("When does the lift run?")


@app(
    "an answer that evaluators check inside the application",
    question="When does the lift run?",
    answer="From 9 until 16 o'clock.",
    chunks=[SKI],
    absent=["YES", "5.0\nGood answer."],
)
def evaluated_inside():
    class Checked(CustomQueryEngine):
        inner: object

        def custom_query(self, query_str):
            response = self.inner.query(query_str)
            judge = writer("YES")
            FaithfulnessEvaluator(llm=judge).evaluate_response(response=response)
            RelevancyEvaluator(llm=judge).evaluate_response(query_str, response)
            CorrectnessEvaluator(llm=writer("5.0\nGood answer.")).evaluate(
                query=query_str, response=str(response), reference="9 to 16"
            )
            return response

    with default_model():
        Checked(inner=engine(SKI, llm=talker("From 9 until 16 o'clock."))).query(
            "When does the lift run?"
        )


@app(
    "an evaluation after the answer",
    question="When does the lift run?",
    answer="Nine to four.",
    chunks=[SKI],
)
def evaluated_after():
    response = engine(SKI, llm=talker("Nine to four.")).query("When does the lift run?")
    with default_model():
        FaithfulnessEvaluator(llm=writer("YES")).evaluate_response(response=response)


@app(
    "questions for a data set that are suppressed",
    question="When does the lift run?",
    answer="At 9 it starts.",
    chunks=[SKI],
)
def suppressed():
    with ragaliq.suppress():
        engine(SKI, llm=writer("What is the limit for wind?")).query("Write a question about this.")
    engine(SKI, llm=talker("At 9 it starts.")).query("When does the lift run?")


@app(
    "a question as a query bundle with other embeddings",
    question="When does the lift run?",
    answer="It starts at 9.",
    chunks=[SKI],
    absent=["lift hours wind"],
)
def bundle():
    index(SKI).as_query_engine(llm=talker("It starts at 9.")).query(
        QueryBundle("When does the lift run?", custom_embedding_strs=["lift hours wind"])
    )


@app(
    "an empty question",
    status=["no_question"],
)
def empty_question():
    engine(SKI, llm=talker("What would you like to know?")).query("")


# --- what providers search themselves -------------------------------------------------------------


@app(
    "a model that searches the web itself and cites what it found",
    question="Is the lift open today?",
    answer="The lift is closed today because of a storm.",
    chunks=["Storm warning: all lifts closed on 4 February."],
)
async def cited_by_provider():
    reply = ChatMessage(
        role="assistant",
        blocks=[
            TextBlock(text="The lift is closed today because of a storm."),
            CitationBlock(
                cited_content="Storm warning: all lifts closed on 4 February.",
                source="https://ski.example/news",
                title="News",
                additional_location_info={},
            ),
        ],
    )
    await FunctionAgent(tools=[_hours], llm=talker(reply)).run(
        "Is the lift open today?", memory=memory()
    )


def _hours() -> str:
    """Hours of the lift."""
    return SKI


@app(
    "a model with a tool and citations of its provider's",
    question="Is the lift open today?",
    answer="Normally from 9 to 16, but it is closed today.",
    chunks=[SKI, "Storm warning: all lifts closed on 4 February."],
)
async def tool_and_citations():
    reply = ChatMessage(
        role="assistant",
        blocks=[
            TextBlock(text="Normally from 9 to 16, but it is closed today."),
            CitationBlock(
                cited_content="Storm warning: all lifts closed on 4 February.",
                source="https://ski.example/news",
                title="News",
                additional_location_info={},
            ),
        ],
    )
    await FunctionAgent(tools=[_hours], llm=talker(call("_hours"), reply)).run(
        "Is the lift open today?", memory=memory()
    )

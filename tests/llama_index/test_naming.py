"""Question, context and answer that an application names itself."""

import asyncio

import pytest
from llama_index.core.base.llms.types import LLMMetadata
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from llama_index.evaluation.ragaliq import attach
from ragaliq import Monitor

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."
NOTE = "Refunds over 500 euros take a week."


class Adding(CustomQueryEngine):
    """Names what it fetched, and shows it to no model."""

    documents: list
    replace: bool = False

    def custom_query(self, query_str):
        Monitor.add_context(*self.documents, replace=self.replace)
        return ANSWER


@pytest.mark.parametrize(
    "document", [NOTE, NodeWithScore(node=TextNode(text=NOTE), score=0.5), {"text": NOTE}]
)
def test_an_engine_names_its_context(document, monitor, handler):
    Adding(documents=[document]).query(QUESTION)
    assert monitor.only == (QUESTION, [NOTE], ANSWER)


async def test_context_that_a_step_names_is_added_to_what_was_found(
    retriever, llm, docs, monitor, handler
):
    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await retriever.aretrieve(ev.question)
            await asyncio.to_thread(Monitor.add_context, NOTE)
            texts = "\n".join(each.text for each in nodes)
            return StopEvent(result=(await llm.acomplete(f"{texts}\n{ev.question}")).text)

    await Desk(timeout=20).run(question=QUESTION)
    assert monitor.only == (QUESTION, [*docs, NOTE], ANSWER)


def test_a_tool_and_a_function_name_context_of_the_run_around_them(llm, monitor, handler):
    tool = FunctionTool.from_defaults(lambda: Monitor.add_context(NOTE), name="note")

    @get_dispatcher("shop").span
    def advise(question):
        Monitor.add_context("Refunds are free.")
        tool.call()
        return llm.complete(question).text

    advise(QUESTION)
    assert monitor.only == (QUESTION, ["Refunds are free.", NOTE], ANSWER)


def test_context_can_be_named_in_place_of_what_was_found(engine, docs, monitor, handler):
    with handler.run(QUESTION) as run:
        run.answer = str(engine().query(QUESTION))
        Monitor.add_context(NOTE, replace=True)
    assert monitor.only == (QUESTION, [NOTE], ANSWER)


def test_results_name_the_model_that_answered(retriever, scripted_llm, monitor, handler):
    class Named(scripted_llm):
        @property
        def metadata(self):
            return LLMMetadata(model_name="small-1")

    writer = Named(reply=lambda prompt: "refunds")
    answering = scripted_llm(reply=lambda prompt: ANSWER)
    for first, second in ((writer, answering), (answering, writer)):
        with handler.run(QUESTION):
            texts = "\n".join(node.text for node in retriever.retrieve(first.complete("?").text))
            second.complete(f"{texts}\n{QUESTION}")
    assert [result.run.model for result in monitor.evaluated] == [None, "small-1"]


def test_context_outside_a_run_is_nobodys(engine, docs, monitor, handler):
    Monitor.add_context(NOTE)
    engine().query(QUESTION)
    Monitor.add_context(NOTE)
    assert monitor.only == (QUESTION, docs, ANSWER)


async def test_keys_are_paths_and_lists(monitor):
    attach(
        monitor,
        question_key=["wish", "data.wish"],
        answer_key=["data.said", "data.more"],
        context_key="data.cites.body",
    )

    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            cites = [{"body": NOTE, "page": 3}]
            return StopEvent(result={"data": {"said": ANSWER, "more": "Ask us.", "cites": cites}})

    await Desk(timeout=20).run(data={"wish": QUESTION, "hint": "Be short, please."})
    question, context, answer = monitor.only
    assert (question, context) == (QUESTION, [NOTE])
    assert ANSWER in answer
    assert "Ask us." in answer

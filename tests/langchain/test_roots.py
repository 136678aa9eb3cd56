"""What is a run, what is a part of one, and what is neither."""

import copy
import sys
import uuid
from collections import UserDict
from types import ModuleType
from typing import Any

import pytest
from langchain_classic.retrievers.multi_query import MultiQueryRetriever
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langsmith import Client, RunTree
from langsmith.run_helpers import tracing_context
from rag_parts import (
    ANSWER,
    PROMPT,
    QUESTION,
    REFUNDS,
    FixedRetriever,
    TopicRetriever,
    joined,
    model,
    rag_chain,
)

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Monitor, suppress

EXPECTED = (QUESTION, REFUNDS, ANSWER)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (FixedRetriever(), QUESTION),
        (PROMPT, {"context": "c", "question": QUESTION}),
        (StrOutputParser(), ANSWER),
        (MultiQueryRetriever.from_llm(TopicRetriever(), model("one\ntwo")), QUESTION),
    ],
    ids=["retriever", "prompt", "parser", "multi-query"],
)
def test_a_part_called_on_its_own_is_no_run(watch, invoke, part, value):
    invoke(part, value, watch.config)
    assert watch.stats.started == 0


def test_a_chain_inside_a_tool_that_is_called_on_its_own_is_a_run(watch, invoke):
    @tool
    def ask(question: str) -> str:
        """Answers."""
        return rag_chain().invoke(question)

    invoke(ask, {"question": QUESTION}, watch.config)
    assert watch.only == EXPECTED


def test_a_handler_given_to_a_part_sees_the_chain_below_it_as_its_run(watch, invoke):
    inner = rag_chain().with_config(watch.config)
    outer = RunnableLambda(lambda q: q) | inner | RunnableLambda(str.upper)
    assert invoke(outer, QUESTION) == ANSWER.upper()
    assert watch.only == EXPECTED


def test_a_handler_in_a_models_constructor_sees_no_run(watch, invoke):
    invoke(rag_chain(llm=model(callbacks=[watch.handler])), QUESTION)
    assert watch.stats.started == 0


def test_a_chain_below_a_run_of_langsmiths_is_a_run(watch, invoke):
    # As inside a function decorated with `traceable`; nothing is sent.
    client = Client(api_url="http://127.0.0.1:1", api_key="none", auto_batch_tracing=False)
    above = RunTree(name="endpoint", client=client)
    with tracing_context(parent=above, enabled=False):
        invoke(rag_chain(), QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_two_handlers_of_two_monitors_each_count_the_run(new_watch, invoke):
    one, two = new_watch(), new_watch()
    invoke(rag_chain(), QUESTION, {"callbacks": [one.handler, two.handler]})
    assert one.only == two.only == EXPECTED


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copied_chain_reports_to_the_same_monitor(watch, invoke, copied):
    invoke(copied(rag_chain().with_config(watch.config)), QUESTION)
    assert watch.only == EXPECTED


def test_what_a_step_does_inside_suppress_is_no_part_of_the_run(watch, invoke):
    def check_quietly(text):
        with suppress():
            rag_chain(FixedRetriever(texts=["Secret."]), model("Checked.")).invoke(text)
            FixedRetriever(texts=["Secret too."]).invoke(text)
            model("Checked again.").invoke(text)
        return {"reworded": text}

    sources = {"context": FixedRetriever() | joined, "question": RunnablePassthrough()}
    chain = sources | PROMPT | model() | StrOutputParser() | RunnableLambda(check_quietly)
    invoke(chain, QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_a_handler_takes_a_monitor_or_its_options_but_not_both():
    built = RagaliqCallbackHandler(judge="local", sample_rate=0.25)
    assert isinstance(built.monitor, Monitor)
    built.monitor.close(1)
    with pytest.raises(TypeError, match="sample_rate"):
        RagaliqCallbackHandler(built.monitor, sample_rate=0.5)


class Strange(UserDict[str, Any]):
    """An input or output that cannot be read."""

    def __eq__(self, other):
        return self.data == other

    __hash__ = None

    def items(self):
        raise RuntimeError("a text of the application")

    values = items


@pytest.mark.parametrize("where", ["input", "step", "output"])
def test_what_cannot_be_read_is_not_felt_and_the_run_is_counted(new_watch, invoke, caplog, where):
    watch = new_watch()
    watch.may_err = True
    made, read = RunnableLambda(lambda q: Strange(odd=q)), RunnableLambda(lambda s: s["odd"])
    chain, value, expected = {
        "input": (read, Strange(odd=QUESTION), QUESTION),
        "step": (made | read, QUESTION, QUESTION),
        "output": (RunnableLambda(lambda q: q) | made, QUESTION, {"odd": QUESTION}),
    }[where]
    for _ in range(3):
        assert invoke(chain, value, watch.config) == expected
    assert watch.handler.errors >= 3
    said = [record.getMessage() for record in caplog.records if "ragaliq" in record.name]
    assert len(said) == 1
    assert "RuntimeError" in said[0]
    assert "a text of the application" not in caplog.text
    assert watch.stats.started == 3


def test_with_an_instrumentation_that_fails_the_run_is_scored(watch, invoke, monkeypatch):
    name = "openinference.instrumentation.langchain"
    broken = ModuleType(name)  # it has no instrumentor
    monkeypatch.setitem(sys.modules, name, broken)
    assert invoke(rag_chain(), QUESTION, watch.config) == ANSWER
    assert watch.only == (QUESTION, REFUNDS, ANSWER)
    assert watch.results[0].target is None


def test_a_call_inside_with_the_id_of_the_run_around_it_does_not_hang(new_watch):
    watch = new_watch()
    config = {"run_id": uuid.uuid4(), "callbacks": [watch.handler]}
    chain = RunnableLambda(lambda question: model().invoke(question, config).content)
    assert chain.invoke(QUESTION, config) == ANSWER

"""Canaries: private names, texts and context variables of LangChain that are used are there."""

import inspect
from importlib import import_module

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from langchain_ragaliq import _private


class Starts(BaseCallbackHandler):
    """Notes the names, the tags and the metadata of all runs."""

    run_inline = raise_error = True

    def __init__(self):
        self.names, self.tags, self.metadata = [], [], {}

    def on_chain_start(self, *given, tags=None, metadata=None, name=None, **more):
        self.names.append(name)
        self.tags += tags or ()
        self.metadata |= metadata or {}

    def on_chat_model_start(self, *given, metadata=None, **more):
        self.metadata |= metadata or {}


def graph_of(node):
    return StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile()


def test_a_graph_is_known_by_the_name_of_a_base_class():
    graph = graph_of(lambda state: {})
    assert _private.is_graph(graph)
    assert _private.is_graph(graph.with_config(tags=["a"]))
    assert not _private.is_graph(RunnableLambda(len))


def test_what_gets_out_of_a_node_is_known_by_the_names_of_its_classes():
    assert _private.is_interrupt(GraphInterrupt())
    assert not _private.is_interrupt(GraphBubbleUp())
    assert _private.is_control_flow(GraphInterrupt())
    assert not _private.is_control_flow(ValueError())


def test_commands_are_known_by_their_module():
    assert Command.__module__.startswith(_private.LANGGRAPH)


def test_the_configuration_of_the_current_runnable_is_in_a_context_variable():
    assert _private.CONFIG is var_child_runnable_config
    found = []
    RunnableLambda(lambda _: found.append(_private.CONFIG.get())).invoke(1, {"tags": ["mine"]})
    assert found[0]["tags"] == ["mine"]


def test_steps_of_sequences_are_tagged_and_items_of_maps_have_a_name():
    starts = Starts()
    chain = RunnableLambda(len) | RunnableLambda(str)
    chain.map().invoke(["a", "b"], {"callbacks": [starts]})
    assert any(tag.startswith(_private.SEQUENCE_STEP) for tag in starts.tags)
    assert any(name.startswith(_private.EACH) for name in starts.names)


def test_metadata_of_frameworks_begins_with_their_names():
    starts, model = Starts(), FakeListChatModel(responses=["Hello."])
    graph = graph_of(lambda state: {"messages": model.invoke(state["messages"])})
    graph.invoke({"messages": "Hi."}, {"callbacks": [starts], "metadata": {"mine": 1}})
    assert {name.partition("_")[0] for name in starts.metadata} >= {"ls", "langgraph"}
    others = [name for name in starts.metadata if not name.startswith(_private.METADATA)]
    assert others == ["mine"]


def test_evaluators_of_langchain_are_known_by_their_names():
    evaluation = import_module("langchain_classic.evaluation")
    for name in ("QAEvalChain", "CriteriaEvalChain", "ScoreStringEvalChain"):
        assert getattr(evaluation, name).__name__.endswith(_private.EVALUATORS)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("langchain.agents.factory", "Returning structured response"),
        ("langchain.agents.middleware.todo", "Updated todo list to "),
        ("langchain.agents.middleware.context_editing", "[cleared]"),
    ],
)
def test_agents_machinery_says_what_is_no_result_of_a_tool(module, text):
    assert text in inspect.getsource(import_module(module))
    assert _private.MACHINERY.match(text)


def test_a_summary_is_marked():
    pytest.importorskip("langchain", minversion="1.2.5")  # earlier releases mark nothing
    model = FakeListChatModel(responses=["They said hello."])
    middleware = SummarizationMiddleware(model, trigger=("tokens", 1), keep=("messages", 1))
    agent = create_agent(model, middleware=[middleware])
    said = [HumanMessage("Hello. " * 30), HumanMessage("Hello again.")]
    messages = agent.invoke({"messages": said})["messages"]
    marks = [message.additional_kwargs.get(_private.SOURCE) for message in messages]
    assert _private.SUMMARY in marks

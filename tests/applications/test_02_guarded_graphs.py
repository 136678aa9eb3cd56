"""Line 2: a guard around a graph keeps the graph's own shapes, and lets no rejected token out."""

import json

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import create_retriever_tool
from langchain_parts import graph
from rag_parts import ANSWER, FALLBACK, QUESTION, WRONG, FixedRetriever, calling, model

from ragaliq import ConfigurationError, GuardRejected

ASK = {"messages": [HumanMessage(QUESTION)]}
MODES = [
    {},
    {"stream_mode": "values"},
    {"stream_mode": "updates", "subgraphs": True},
    {"stream_mode": ["updates", "values"]},
]


def agent(answer):
    search = create_retriever_tool(FixedRetriever(), "search", "Searches the handbook.")
    return create_agent(model(calling("search", query="refunds"), answer), [search])


def state_graph(*answers):
    llm = model(*answers)

    def retrieve(state):
        return {"documents": FixedRetriever().invoke("refunds")}

    def generate(state):
        return {"generation": llm.invoke(str(state["documents"])).text}

    return graph(retrieve, generate)


def plain(value):
    """What a stream yielded, messages and documents as their texts."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.text if hasattr(value, "text") else getattr(value, "page_content", value)


def replaced_in(value):
    return json.loads(json.dumps(plain(value)).replace(WRONG, FALLBACK))


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("answer", [ANSWER, WRONG])
def test_a_stream_keeps_its_shape_and_a_rejected_answer_is_replaced_wherever_it_has_it(
    guard_of, stream, options, answer
):
    for make, asked in ((agent, ASK), (state_graph, {"question": QUESTION})):
        bare = plain(stream(make(answer), asked, **options))
        assert answer in repr(bare)
        assert plain(stream(guard_of(make(answer)), asked, **options)) == replaced_in(bare)


def test_only_the_last_attempt_is_streamed(guard_of, stream):
    guard = guard_of(state_graph(WRONG, ANSWER), action="retry")
    pieces = stream(guard, {"question": QUESTION}, stream_mode="updates")
    assert [list(piece) for piece in pieces] == [["retrieve"], ["generate"]]
    assert pieces[-1] == {"generate": {"generation": ANSWER}}


def test_a_stream_that_is_annotated_has_the_note_where_the_answer_is(guard_of, stream):
    pieces = stream(guard_of(agent(WRONG), action="annotate"), ASK, stream_mode="updates")
    last = pieces[-1]["model"]["messages"][-1]
    assert (last.text, last.response_metadata["ragaliq"]["decision"]) == (WRONG, "rejected")


def test_a_stream_that_must_not_go_out_yields_nothing(guard_of):
    seen = []
    with pytest.raises(GuardRejected):
        seen.extend(guard_of(agent(WRONG), action="raise").stream(ASK, stream_mode="updates"))
    assert seen == []


@pytest.mark.parametrize("stream_mode", ["messages", ["values", "custom"]])
def test_modes_that_cannot_be_held_back_are_refused(guard_of, invoke, stream, stream_mode):
    guard = guard_of(agent(WRONG))
    for call in (invoke, stream):
        with pytest.raises(ConfigurationError, match="stream_mode"):
            call(guard, ASK, stream_mode=stream_mode)
    made = agent(WRONG)
    made.stream_mode = stream_mode
    with pytest.raises(ConfigurationError, match="stream_mode"):
        stream(guard_of(made), ASK)


@pytest.mark.parametrize("answer", [ANSWER, WRONG])
def test_called_for_updates_a_graph_returns_the_list_it_returns(guard_of, invoke, answer):
    bare = plain(invoke(agent(answer), ASK, stream_mode="updates"))
    guarded = plain(invoke(guard_of(agent(answer)), ASK, stream_mode="updates"))
    assert guarded == replaced_in(bare)
    assert isinstance(invoke(guard_of(agent(answer)), ASK)["messages"][-1], AIMessage)

"""One table of applications: each gives the same case through handler, span processor and file."""

import asyncio

import langchain_shapes
import llama_index_shapes
import pytest

# OpenInference reads messages and settings in the old way.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.usefixtures("loop_of_synchronous_calls"),
]


LANGCHAIN = langchain_shapes.SHAPES


@pytest.mark.parametrize("name", LANGCHAIN)
def test_a_langchain_application(name, doors, langchain):
    LANGCHAIN[name].make().invoke(LANGCHAIN[name].asked, langchain)
    doors.assert_shape(LANGCHAIN[name])


@pytest.mark.parametrize(
    "name",
    [
        "chain",
        "two retrievers",
        "agent",
        "graph",
        "rewritten with history",
        "a decorated function",
        "a tool that asks a retriever",
        "a graph inside a graph",
        "AgentExecutor",
    ],
)
async def test_an_asynchronous_langchain_application(name, doors, langchain):
    shape = (LANGCHAIN | langchain_shapes.ASYNCHRONOUS)[name]
    await shape.make().ainvoke(shape.asked, langchain)
    await asyncio.to_thread(doors.assert_shape, shape)


@pytest.mark.parametrize("name", ["chain", "agent", "graph", "rewritten with history"])
def test_a_langchain_application_that_streams(name, doors, langchain):
    list(LANGCHAIN[name].make().stream(LANGCHAIN[name].asked, langchain))
    doors.assert_shape(LANGCHAIN[name])


@pytest.mark.usefixtures("llama_index")
@pytest.mark.parametrize("name", llama_index_shapes.SHAPES)
def test_a_llama_index_application(name, doors):
    shape = llama_index_shapes.SHAPES[name]
    shape.ask()
    doors.assert_one_case(llama_index_shapes.QUESTION, shape.texts, shape.answer)


@pytest.mark.usefixtures("llama_index")
@pytest.mark.parametrize("name", llama_index_shapes.ASYNCHRONOUS)
async def test_an_asynchronous_llama_index_application(name, doors):
    shape = llama_index_shapes.ASYNCHRONOUS[name]
    await shape.ask()
    await asyncio.to_thread(
        doors.assert_one_case, llama_index_shapes.QUESTION, shape.texts, shape.answer
    )

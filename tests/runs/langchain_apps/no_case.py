"""Applications whose runs must give no case, each with its reason."""

import asyncio
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import calling, chat, finding, joined
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

HEAT = "The boiler is set to 55 degrees."


def rag(model):
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    return (
        {"context": finding(HEAT) | joined, "question": RunnablePassthrough()}
        | prompt
        | model
        | StrOutputParser()
    )


@app("a lone call of a model", status="not_rag", attached=True)
def lone_model(config):
    chat("There once was a printer in Ghent.").invoke("Write a limerick about printers.")


@app("a lone search", status="not_rag", attached=True)
def lone_search(config):
    finding(HEAT).invoke("boiler temperature")


@app("a search, and a model that was shown nothing of it", status="not_rag", attached=True)
def unrelated(config):
    finding(HEAT).invoke("boiler temperature")
    chat("Good morning!").invoke("Say good morning.")


@app("an empty answer", status="no_answer")
def empty(config):
    rag(chat("")).invoke("How hot is the boiler?", config)


@app("an empty question", status="no_question")
def no_question(config):
    rag(chat("It is 55 degrees.")).invoke(" ", config)


@app("a model that raises", status="errored")
def model_raises(config):
    def fail(messages):
        raise ConnectionError("overloaded")

    try:
        rag(chat(fail)).invoke("How hot is the boiler?", config)
    except ConnectionError:
        return
    raise AssertionError


@app("a retriever that raises", status="errored")
async def retriever_raises(config):
    class Broken(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            raise TimeoutError("the index does not answer")

    chain = Broken() | joined | chat("x")
    try:
        await chain.ainvoke("How hot is the boiler?", config)
    except TimeoutError:
        return
    raise AssertionError


@app("a stream that its reader leaves", status=["truncated", "cancelled"])
def left(config):
    stream = rag(chat("The boiler is set to 55 degrees and has been for years.")).stream(
        "How hot is the boiler?", config
    )
    next(stream)
    next(stream)
    stream.close()


@app("a task that is cancelled", status="cancelled")
async def cancelled(config):
    started = asyncio.Event()

    async def slow(question):
        started.set()
        await asyncio.sleep(60)

    chain = finding(HEAT) | joined | RunnableLambda(slow)
    task = asyncio.create_task(chain.ainvoke("How hot is the boiler?", config))
    await started.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@app("a graph that waits for a person", status="interrupted")
def interrupted(config):
    def approve(state: MessagesState):
        found = joined(finding(HEAT).invoke(state["messages"][-1].text))
        reply = interrupt({"draft": f"May I say this? {found}"})
        return {"messages": [AIMessage(reply)]}

    graph = StateGraph(MessagesState)
    graph.add_node(approve)
    graph.add_edge(START, "approve")
    graph.compile(checkpointer=InMemorySaver()).invoke(
        {"messages": [HumanMessage("How hot is the boiler?")]},
        {**config, "configurable": {"thread_id": "t"}},
    )


@app("an agent that never stops searching", status="errored")
def never_stops(config):
    search = create_retriever_tool(finding(HEAT), "search", "Searches.")

    def again(messages):
        return calling("search", query="boiler")

    try:
        create_agent(chat(again), [search]).invoke(
            {"messages": [HumanMessage("How hot is the boiler?")]},
            {**config, "recursion_limit": 6},
        )
    except GraphRecursionError:
        return
    raise AssertionError


@app("an index that is built", status=["not_rag", "no_answer", "no_question"])
def indexing(config):
    class State(TypedDict, total=False):
        path: str
        pages: list[str]
        stored: int

    def load(state: State):
        return {"pages": [HEAT, "The pump was replaced in 2020."]}

    def add(state: State):
        return {"stored": len(state["pages"])}

    graph = StateGraph(State)
    graph.add_sequence([load, add])
    graph.add_edge(START, "load")
    graph.compile().invoke({"path": "/data/boiler.pdf"}, config)


@app("a tool's text that is returned directly", status="no_answer")
def direct(config):
    @tool(return_direct=True)
    def temperature(place: str) -> str:
        """Read a sensor."""
        return "55 degrees"

    create_agent(chat(calling("temperature", place="boiler")), [temperature]).invoke(
        {"messages": [HumanMessage("How hot is the boiler?")]}, config
    )

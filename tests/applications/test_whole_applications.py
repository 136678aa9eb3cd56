"""Applications with all their parts: planning, parallel searches, reranking, memory, a service."""

import asyncio
import operator
from typing import Annotated, TypedDict

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import StructuredTool
from langchain_parts import ANSWER, HOURS, PARKING, REFUNDS, Finding, model
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_parts import KeepFirst, Search, memory
from llama_index_parts import model as llama_model
from rag_parts import QUESTION, calling, joined

FOLLOW_UP = "And for parcels?"


class Plan(TypedDict, total=False):
    question: str
    parts: list
    found: Annotated[list, operator.add]
    kept: list
    answer: str


def plan(state):
    parts = model("refunds\nopening hours").invoke(f"Split: {state['question']}").text
    return {"parts": parts.splitlines()}


def search(state):
    text = REFUNDS if state["part"] == "refunds" else HOURS
    return {"found": Finding(texts=[text, PARKING]).invoke(state["part"])}


def rerank(state):
    by_text = {document.page_content: document for document in state["found"]}
    scores = {
        text: float(model("0.1" if text == PARKING else "0.9").invoke(f"Rate: {text}").text)
        for text in by_text
    }
    return {"kept": [by_text[text] for text, score in scores.items() if score > 0.5]}


def answer(state):
    prompt = [SystemMessage(joined(state["kept"])), HumanMessage(state["question"])]
    return {"answer": model().invoke(prompt).text}


def test_parallel_searches_that_a_model_reranks(watch):
    builder = StateGraph(Plan)
    for node in (plan, search, rerank, answer):
        builder.add_node(node)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan", lambda state: [Send("search", {"part": part}) for part in state["parts"]]
    )
    builder.add_edge("search", "rerank")
    builder.add_edge("rerank", "answer")
    builder.add_edge("answer", END)
    builder.compile().invoke({"question": QUESTION}, watch.config)
    assert (watch.only.query, watch.only.response) == (QUESTION, ANSWER)
    assert watch.only.context_texts == [REFUNDS, HOURS]


def test_an_agent_that_plans_and_asks_a_server_of_tools(watch):
    async def look_up(query: str):
        # As MCP adapters return it: a block for each result, and the structured content aside.
        blocks = [{"type": "text", "text": text} for text in (REFUNDS, HOURS)]
        return blocks, {"structured_content": {"result": [REFUNDS, HOURS]}}

    server = StructuredTool.from_function(
        coroutine=look_up,
        name="look_up",
        description="Searches.",
        response_format="content_and_artifact",
    )
    todos = [{"content": "Look up how long refunds take", "status": "in_progress"}]
    replies = (calling("write_todos", todos=todos), calling("look_up", query="refunds"), ANSWER)
    agent = create_agent(model(*replies), [server], middleware=[TodoListMiddleware()])
    asyncio.run(agent.ainvoke({"messages": [HumanMessage(QUESTION)]}, watch.config))
    # The list of things to do is the agent's own, and no evidence.
    assert (watch.only.query, watch.only.context_texts) == (QUESTION, [REFUNDS, HOURS])


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_a_service_that_streams_answers_and_rewrites_questions_by_their_history(watch):
    rewriting = [("placeholder", "{chat_history}"), ("human", "{input}"), ("human", "Rewrite.")]
    retriever = create_history_aware_retriever(
        model("refunds for parcels"), Finding(), ChatPromptTemplate.from_messages(rewriting)
    )
    answering = [("system", "{context}"), ("placeholder", "{chat_history}"), ("human", "{input}")]
    history = InMemoryChatMessageHistory()
    chat = RunnableWithMessageHistory(
        create_retrieval_chain(
            retriever,
            create_stuff_documents_chain(model(), ChatPromptTemplate.from_messages(answering)),
        ),
        lambda _: history,
        input_messages_key="input",
        history_messages_key="chat_history",
        output_messages_key="answer",
    )
    service = FastAPI()

    @service.get("/ask")
    async def ask(question: str):
        async def pieces():
            config = {**watch.config, "configurable": {"session_id": "s-1"}}
            async for piece in chat.astream({"input": question}, config):
                yield piece.get("answer", "")

        return StreamingResponse(pieces())

    client = TestClient(service)
    for question in (QUESTION, FOLLOW_UP):
        assert client.get("/ask", params={"question": question}).text == ANSWER
    first, second = watch.cases
    assert (first.query, first.history) == (QUESTION, [])
    assert (second.query, second.response) == (FOLLOW_UP, ANSWER)
    assert [turn.text for turn in second.history] == [QUESTION, ANSWER]
    assert watch.contexts == [[REFUNDS, HOURS]] * 2


class Retrieved(Event):
    nodes: list
    query: str


class Citing(Workflow):
    """Rewrites the question by what it remembers, reranks, numbers its sources and cites them."""

    @step
    async def retrieve(self, ctx: Context, ev: StartEvent) -> Retrieved:
        told = await ctx.store.get("told", default=[])
        query = await llama_model("refunds for parcels").acomplete(f"{told} Rewrite: {ev.query}")
        nodes = await Search(REFUNDS, PARKING, HOURS).aretrieve(query.text)
        return Retrieved(nodes=KeepFirst().postprocess_nodes(nodes) + nodes[2:], query=ev.query)

    @step
    async def answer(self, ctx: Context, ev: Retrieved) -> StopEvent:
        sources = [
            NodeWithScore(node=TextNode(text=f"Source {number}:\n{found.node.text}"))
            for number, found in enumerate(ev.nodes, start=1)
        ]
        synthesizer = get_response_synthesizer(llm=llama_model(f"{ANSWER} [1]"))
        response = await synthesizer.asynthesize(ev.query, sources)
        await ctx.store.set("told", [ev.query, str(response)])
        return StopEvent(result=response)


async def test_a_workflow_with_a_memory_that_cites_its_sources(runs):
    workflow = Citing()
    context = Context(workflow)
    for question in (QUESTION, FOLLOW_UP):
        await workflow.run(query=question, ctx=context)
    assert [case.query for case in runs.cases] == [QUESTION, FOLLOW_UP]
    for case in runs.cases:
        assert case.context_texts == [f"Source 1:\n{REFUNDS}", f"Source 2:\n{HOURS}"]
        assert case.response == f"{ANSWER} [1]"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own agents
async def test_an_agent_that_calls_tools_by_text_has_no_history_of_its_own_thoughts(runs):
    def policy(topic: str) -> str:
        return REFUNDS

    thought = 'Thought: I look it up.\nAction: policy\nAction Input: {"topic": "refunds"}'
    replies = [thought, f"Thought: I can answer.\nAnswer: {ANSWER}"]
    agent = ReActAgent(
        tools=[FunctionTool.from_defaults(policy)], llm=llama_model(*replies, is_chat_model=True)
    )
    await agent.run(user_msg=QUESTION, memory=memory())
    (case,) = runs.cases
    # What it found is shown to its model as a message of the user's.
    assert (case.query, case.context_texts, case.history) == (QUESTION, [REFUNDS], [])

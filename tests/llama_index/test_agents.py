"""Agents and workflows: one run, whatever goes on inside."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import Context, StartEvent, StopEvent, Workflow, step
from llama_index.core.workflow.errors import WorkflowCancelledByUser
from packaging.version import Version

# Building an agent makes LlamaIndex look at every attribute of a pydantic model.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."
FINAL = "It takes five days."
CALL = "(calls a tool)"


class CallingLLM(CustomLLM, FunctionCallingLLM):
    """A model that calls a tool once and then answers."""

    tool: str
    arguments: dict[str, Any]

    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, context_window=100_000)

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=FINAL if "\ntool:" in prompt else CALL)

    def stream_complete(self, prompt, formatted=False, **kwargs):
        text = self.complete(prompt).text
        yield CompletionResponse(text=text, delta=text)

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
        return {"messages": [*(chat_history or ()), *([user_msg] if user_msg else ())]}

    def get_tool_calls_from_response(self, response, *args, **kwargs):
        if response.message.content != CALL:
            return []
        return [ToolSelection(tool_id="1", tool_name=self.tool, tool_kwargs=self.arguments)]


def calling(tool, **arguments):
    return CallingLLM(tool=tool, arguments=arguments)


def memory():
    return ChatMemoryBuffer.from_defaults(token_limit=10_000)


@pytest.fixture
def query_tool(engine):
    return QueryEngineTool.from_defaults(engine(), name="policy", description="The policy.")


@pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning")
async def test_a_react_agent_gives_the_same(query_tool, scripted_llm, monitor, handler, docs):
    def reply(prompt):
        if "Observation:" in prompt.rsplit("user:", 1)[-1]:
            return f"Thought: I can answer.\nAnswer: {FINAL}"
        return 'Thought: I need a tool.\nAction: policy\nAction Input: {"input": "refunds"}'

    agent = ReActAgent(tools=[query_tool], llm=scripted_llm(reply=reply))
    await agent.run(user_msg=QUESTION, memory=memory())

    assert monitor.only == (QUESTION, docs, FINAL)


async def test_a_retriever_called_by_a_plain_tool_is_found(retriever, monitor, handler, docs):
    def look_up(query: str) -> str:
        return "\n".join(node.text for node in retriever.retrieve(query))

    tool = FunctionTool.from_defaults(look_up)
    agent = FunctionAgent(tools=[tool], llm=calling("look_up", query="refunds"))
    await agent.run(user_msg=QUESTION, memory=memory())

    if Version(version("llama-index-core")) < Version("0.14.22"):
        # The tool runs in a thread without its context: nobody can tell whose search it was.
        assert monitor.outcomes == {"not_rag": 1}
    else:
        assert monitor.only == (QUESTION, docs, FINAL)


class Rag(Workflow):
    """Retrieval and an answer in two steps, the way the documentation shows it."""

    retriever = None
    answer = staticmethod(lambda: ANSWER)

    @step
    async def work(self, ctx: Context, ev: StartEvent) -> StopEvent:
        await self.retriever.aretrieve(ev.query)
        result = self.answer()
        return StopEvent(result=await result if asyncio.iscoroutine(result) else result)


@pytest.fixture
def workflow(retriever):
    made = Rag()
    made.retriever = retriever
    return made


async def test_a_workflow_of_ones_own_gives_what_it_retrieved(workflow, monitor, handler, docs):
    assert await workflow.run(query=QUESTION) == ANSWER

    assert monitor.only == (QUESTION, docs, ANSWER)


async def test_a_workflow_may_return_a_stream(workflow, engine, monitor, handler, docs):
    workflow.answer = lambda: engine(streaming=True).aquery("rewritten")
    response = await workflow.run(query=QUESTION)
    assert monitor.cases == []
    async for _ in response.async_response_gen():
        pass

    assert monitor.only == (QUESTION, docs, ANSWER)


async def test_a_cancelled_workflow_is_cancelled(workflow, monitor, handler):
    reached = asyncio.Event()

    async def stuck():
        reached.set()
        await asyncio.Event().wait()

    workflow.answer = stuck
    run = workflow.run(query=QUESTION)
    await reached.wait()
    await run.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await run

    assert monitor.outcomes == {"cancelled": 1}

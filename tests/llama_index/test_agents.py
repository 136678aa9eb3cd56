"""Agents and workflows: one run, whatever goes on inside."""

import asyncio
from importlib.metadata import version

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index.core.workflow.errors import WorkflowCancelledByUser
from llama_index_parts import memory, model
from packaging.version import Version

# Building an agent makes LlamaIndex look at every attribute of a pydantic model.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."
FINAL = "It takes five days."


async def test_a_retriever_called_by_a_plain_tool_is_found(retriever, monitor, handler, docs):
    def look_up(query: str) -> str:
        return "\n".join(node.text for node in retriever.retrieve(query))

    tool = FunctionTool.from_defaults(look_up)
    agent = FunctionAgent(tools=[tool], llm=model(("look_up", {"query": "refunds"}), FINAL))
    await agent.run(user_msg=QUESTION, memory=memory())
    if Version(version("llama-index-core")) < Version("0.14.22"):
        # The tool runs in a thread without its context: nobody can tell whose search it was, and
        # what the model was shown is the tool's text.
        docs = ["\n".join(docs)]
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


async def test_what_a_tool_said_supports_nothing_where_it_is_the_answer(
    workflow, monitor, handler, retriever_class
):
    tool = FunctionTool.from_defaults(lambda: "Made up.", name="policy")

    async def hand_on():
        return (await tool.acall()).content

    workflow.retriever = retriever_class(lambda _: [])
    workflow.answer = hand_on
    await workflow.run(query=QUESTION)
    assert monitor.only == (QUESTION, [], "Made up.")


class Found(Event):
    nodes: list


class Kept(Event):
    nodes: list


class OwnSearch(Workflow):
    """Asks a store's client itself, drops all but the first, and hands on the nodes in events."""

    found = ()
    llm = None

    @step
    async def search(self, ev: StartEvent) -> Found:
        return Found(nodes=list(self.found))

    @step
    async def rerank(self, ev: Found) -> Kept:
        return Kept(nodes=ev.nodes[:1])

    @step
    async def answer(self, ev: Kept) -> StopEvent:
        if self.llm is None:
            return StopEvent(result=FINAL)
        reply = await self.llm.acomplete(f"{ev.nodes[0].node.text}\n{QUESTION}")
        return StopEvent(result=reply.text)


@pytest.mark.parametrize("asks_a_model", [True, False])
async def test_nodes_that_a_workflow_hands_on_count_as_found(
    asks_a_model, scripted_llm, monitor, handler, nodes
):
    workflow = OwnSearch()
    workflow.found = nodes(ANSWER, "Shops open at nine.")
    workflow.llm = scripted_llm(reply=lambda _: FINAL) if asks_a_model else None
    await workflow.run(query=QUESTION)
    assert monitor.only == (QUESTION, [ANSWER], FINAL)

"""Shapes in which people write LlamaIndex applications, with the case that each must give.

Data for `test_every_door.py`. A row is a name, what asks `QUESTION`, and the texts and the answer
of its case.
"""

from typing import NamedTuple

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
)
from llama_index.core.base.response.schema import Response
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
)
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    RetrieverQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever, RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from question_generators import OneQuestionEach

QUESTION = "How long do refunds take?"
ANSWER = "It takes five days [1]."
AT_LENGTH = "It takes five days until the money is back, and it's paid to the card."
TEXTS = ["by: A\n\nRefunds take five days. äöü", "Shops open at nine."]


class Shape(NamedTuple):
    """One application and the case that it must give."""

    ask: object
    texts: list[str] = TEXTS
    answer: str = ANSWER


class Shelf(BaseRetriever):
    """Nodes with metadata, of which the model is not to see everything, and without a score."""

    def __init__(self, *, without=""):
        super().__init__()
        self.without = without.split()

    def _retrieve(self, query_bundle):
        hidden = {"excluded_llm_metadata_keys": ["page"]}
        first = TextNode(
            id_="n1", text="Refunds take five days. äöü", metadata={"by": "A", "page": 3}, **hidden
        )
        found = [
            NodeWithScore(node=first, score=0.5),
            NodeWithScore(node=TextNode(id_="n2", text="Shops open at nine."), score=None),
        ]
        return [node for node in found if node.node_id not in self.without]


class Backwards(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [NodeWithScore(node=n.node, score=0.75) for n in reversed(nodes)]


class First(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes[:1]


class Clerk(CustomLLM):
    says: str = ANSWER

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **kwargs):
        rewrite = "standalone question" in prompt.lower()
        return CompletionResponse(text="refund duration" if rewrite else self.says)

    def stream_complete(self, prompt, formatted=False, **kwargs):
        yield CompletionResponse(text="It takes five days.", delta="It takes five days.")


class Speaker(Clerk):
    """Is asked by messages."""

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True)


class Desk(Workflow):
    @step
    async def work(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=await engine().aquery(ev.question))


class Study(Workflow):
    """Retrieves, and asks a chat model about what it found."""

    @step
    async def work(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=await self.answer(ev.question))

    async def answer(self, question):
        found = "\n".join(node.text for node in await Shelf(without="n1").aretrieve(question))
        message = ChatMessage(f"Use this:\n{found}\n\n{question}")
        return (await Clerk(says=AT_LENGTH).achat([message])).message.content


class Studied(StopEvent):
    said: str


class StudyWithEvent(Study):
    @step
    async def work(self, ev: StartEvent) -> Studied:
        return Studied(said=await self.answer(ev.question))


class StudyWithSources(Study):
    """Answers with what no model said: spans hold its beginning only."""

    @step
    async def work(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=f"From the handbook: {await self.answer(ev.question)}")


class Writing(Workflow):
    @step
    async def work(self, ev: StartEvent) -> StopEvent:
        found = await Shelf().aretrieve(ev.question)
        llm = Speaker(says=AT_LENGTH)
        return StopEvent(result=await get_response_synthesizer(llm).asynthesize(ev.question, found))


class Refund(BaseModel):
    """How long it takes."""

    days: int


class Plain(CustomQueryEngine):
    """Retrieves itself, asks nobody, and may say what it used."""

    named: bool = False

    def custom_query(self, query_str):
        # Spans do not say which of a node's metadata a model would have been shown.
        found = Shelf(without="n1").retrieve(query_str)
        return Response(ANSWER, source_nodes=found) if self.named else ANSWER


def engine(retriever=None, llm=None, **options):
    return RetrieverQueryEngine.from_args(retriever or Shelf(), llm=llm or Clerk(), **options)


class Topics(BaseRetriever):
    """Finds the engine to ask, by what it knows."""

    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=IndexNode(text="What the policy says", index_id="policy"), score=0.5)
        ]


def retriever_that_asks():
    said = engine(llm=Clerk(says="Nine days is what I made up, paid in cash."))
    return RecursiveRetriever(
        "topics", retriever_dict={"topics": Topics()}, query_engine_dict={"policy": said}
    )


def first_letters(count):
    """A prompt that shows no more of what was found."""
    cut = {"context_str": lambda **given: given["context_str"][:count]}
    return PromptTemplate("{context_str}\n{query_str}", function_mappings=cut)


def sub_questions():
    said = engine(llm=Clerk(says="Five days is what the policy says."))
    tool = QueryEngineTool.from_defaults(said, name="policy", description="Policy")
    synthesizer = get_response_synthesizer(Clerk())
    return SubQuestionQueryEngine(
        OneQuestionEach("How long?"), synthesizer, [tool], verbose=False, use_async=False
    ).query(QUESTION)


def memory():
    # The default memory keeps a database connection that nobody closes.
    return ChatMemoryBuffer.from_defaults(token_limit=10_000)


def chat(kind):
    if kind is CondenseQuestionChatEngine:
        return kind.from_defaults(engine(), llm=Clerk(), memory=memory())
    return kind.from_defaults(Shelf(), llm=Clerk(), memory=memory())


class Caller(CustomLLM, FunctionCallingLLM):
    """Calls its tools, then answers."""

    answer: str = ANSWER
    calls: tuple[str, ...] = ("policy",)

    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, context_window=100_000)

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=self.answer if "\ntool:" in prompt else "(calls)")

    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise NotImplementedError

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
        return {"messages": [*(chat_history or ()), *([user_msg] if user_msg else ())]}

    def get_tool_calls_from_response(self, response, *args, **kwargs):
        if response.message.content != "(calls)":
            return []
        return [
            ToolSelection(tool_id=name, tool_name=name, tool_kwargs={"input": "refunds"})
            for name in self.calls
        ]


class Connected(Caller):
    """Is asked by messages only, as the models of a provider are."""

    @llm_chat_callback()
    async def achat(self, messages, **kwargs):
        said = self.answer if messages[-1].role == "tool" else "(calls)"
        return ChatResponse(message=ChatMessage(said, role="assistant"))


def policy(input: str) -> str:  # noqa: A002 - as a query engine tool calls it
    return "Refunds take five days. They are paid to the card."


def search(input: str) -> list:  # noqa: A002 - as above
    return [{"content": "Refunds take five days."}, {"content": "Shops open at nine."}]


def broken(input: str) -> str:  # noqa: A002 - as above
    raise ConnectionError("The index of refunds is down.")


class Thinker(Clerk):
    """Calls its tool by text, then answers."""

    def complete(self, prompt, formatted=False, **kwargs):
        is_told = "Observation:" in prompt.rsplit("user:", 1)[-1]
        action = 'Action: policy\nAction Input: {"input": "refunds"}'
        said = f"I can answer.\nAnswer: {ANSWER}" if is_told else f"I need a tool.\n{action}"
        return CompletionResponse(text=f"Thought: {said}")


class Streamer(Thinker):
    """A model of the application's own, which tells nobody when its streams end."""

    def stream_complete(self, prompt, formatted=False, **kwargs):
        said = self.complete(prompt).text
        for end in range(1, len(said) + 1):
            yield CompletionResponse(text=said[:end], delta=said[end - 1])


def react_agent(llm=None, **settings):
    tool = FunctionTool.from_defaults(policy)
    made = ReActAgent(tools=[tool], llm=llm or Thinker(), **settings)
    return made.run(user_msg=QUESTION, memory=memory())


def agent(*tools, model=Caller, **settings):
    made = FunctionAgent(tools=tools, llm=model(**settings), streaming=False)
    return made.run(user_msg=QUESTION, memory=memory())


def agent_with_state(**settings):
    tools = [FunctionTool.from_defaults(policy)]
    made = FunctionAgent(name="a", description="a", tools=tools, llm=Caller(), streaming=False)
    around = AgentWorkflow(agents=[made], initial_state={"tier": "gold"}, **settings)
    return around.run(user_msg=QUESTION, memory=memory())


def agent_that_hands_on(tool):
    """The tool's text is the answer as it is."""
    tool.metadata.return_direct = True
    return agent(tool)


SHAPES = {
    "query": Shape(lambda: engine().query(QUESTION)),
    "reranked": Shape(
        lambda: engine(node_postprocessors=[Backwards()]).query(QUESTION), TEXTS[::-1]
    ),
    "only the first": Shape(
        lambda: engine(node_postprocessors=[First()]).query(QUESTION), TEXTS[:1]
    ),
    "refined": Shape(lambda: engine(response_mode=ResponseMode.REFINE).query(QUESTION)),
    "summarised as a tree": Shape(
        lambda: engine(response_mode=ResponseMode.TREE_SUMMARIZE).query(QUESTION)
    ),
    "accumulated": Shape(
        lambda: engine(response_mode=ResponseMode.ACCUMULATE).query(QUESTION),
        answer=f"{ANSWER}\n\n{ANSWER}",
    ),
    "answered from memory, whatever was found": Shape(
        lambda: engine(response_mode=ResponseMode.GENERATION).query(QUESTION), []
    ),
    "a structured answer": Shape(
        lambda: engine(llm=Clerk(says='{"days": 5}'), output_cls=Refund).query(QUESTION),
        answer="days: 5",
    ),
    "sub-questions, whose answers are no evidence": Shape(sub_questions),
    "a retriever that asks an engine, whose answer is no evidence": Shape(
        lambda: engine(retriever_that_asks()).query(QUESTION)
    ),
    "a prompt that is cut": Shape(
        lambda: engine(text_qa_template=first_letters(len(TEXTS[0]))).query(QUESTION), TEXTS[:1]
    ),
    "citations": Shape(
        lambda: CitationQueryEngine(Shelf(), llm=Clerk()).query(QUESTION),
        [
            "by: A\n\nSource 1:\nRefunds take five days. äöü",
            "Source 2:\nShops open at nine.\n",
        ],
    ),
    "an engine that asks nobody": Shape(lambda: Plain().query(QUESTION), TEXTS[1:]),
    "an engine that says what it used": Shape(lambda: Plain(named=True).query(QUESTION), TEXTS[1:]),
    "chat": Shape(lambda: chat(ContextChatEngine).chat(QUESTION)),
    "condensed chat": Shape(lambda: chat(CondenseQuestionChatEngine).chat(QUESTION)),
    "condensed chat with context": Shape(
        lambda: chat(CondensePlusContextChatEngine).chat(QUESTION)
    ),
}
ASYNCHRONOUS = {
    "query": Shape(lambda: engine().aquery(QUESTION)),
    "workflow around an engine": Shape(lambda: Desk().run(question=QUESTION)),
    "workflow that asks a model itself": Shape(
        lambda: Study().run(question=QUESTION), TEXTS[1:], AT_LENGTH
    ),
    "workflow that ends with its own event": Shape(
        lambda: StudyWithEvent().run(question=QUESTION), TEXTS[1:], AT_LENGTH
    ),
    "workflow around a synthesizer": Shape(
        lambda: Writing().run(question=QUESTION), answer=AT_LENGTH
    ),
    "chat": Shape(lambda: chat(ContextChatEngine).achat(QUESTION)),
    "agent with an engine": Shape(
        lambda: agent(QueryEngineTool.from_defaults(engine(), name="policy", description="Policy"))
    ),
    "agent with an ordinary tool": Shape(
        lambda: agent(FunctionTool.from_defaults(policy)), [policy("")]
    ),
    "agent with a tool that lists what it found": Shape(
        lambda: agent(FunctionTool.from_defaults(search, name="policy")),
        ["Refunds take five days.", "Shops open at nine."],
    ),
    "agent that calls its tool by text": Shape(lambda: react_agent(streaming=False), [policy("")]),
    "agent that streams": Shape(lambda: react_agent(Streamer()), [policy("")]),
    "agent with a state, which it shows its model": Shape(agent_with_state, [policy("")]),
    "agent with a state, shown in the application's words": Shape(
        lambda: agent_with_state(state_prompt="{msg}\n(The state is {state}.)"), [policy("")]
    ),
    "agent that hands an engine's answer on": Shape(
        lambda: agent_that_hands_on(
            QueryEngineTool.from_defaults(engine(), name="policy", description="Policy")
        )
    ),
    "agent that answers at length": Shape(
        lambda: agent(FunctionTool.from_defaults(policy), answer=AT_LENGTH),
        [policy("")],
        AT_LENGTH,
    ),
    "agent that calls a tool which there is not": Shape(
        lambda: agent(
            FunctionTool.from_defaults(policy), model=Connected, calls=("policy", "nobody")
        ),
        [policy("")],
    ),
    "agent with a tool that fails": Shape(
        lambda: agent(
            FunctionTool.from_defaults(policy),
            FunctionTool.from_defaults(broken),
            calls=("policy", "broken"),
        ),
        [policy("")],
    ),
}

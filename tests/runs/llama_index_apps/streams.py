"""Answers that are streamed, read to their end or not."""

import asyncio
import io
from contextlib import redirect_stdout, suppress

from harness import app
from llama_index.core import get_response_synthesizer
from llama_index.core.agent.workflow import AgentStream, FunctionAgent, ReActAgent
from llama_index.core.chat_engine import ContextChatEngine, SimpleChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Shelf, call, index, memory, talker, writer

dispatcher = get_dispatcher(__name__)

BEES = "A hive holds up to fifty thousand bees in summer."
HONEY = "Honey keeps for years if it is stored in the dark."


def engine(*texts, llm, **settings):
    return RetrieverQueryEngine.from_args(Shelf(*texts), llm=llm, streaming=True, **settings)


@app(
    "a stream of a query engine",
    question="How many bees are in a hive?",
    answer="Up to fifty thousand in summer. In winter there are ten thousand.",
    chunks=[BEES],
    invented=["In winter there are ten thousand."],
)
def query_stream():
    llm = writer("Up to fifty thousand in summer. In winter there are ten thousand.")
    for _ in engine(BEES, llm=llm).query("How many bees are in a hive?").response_gen:
        pass


@app(
    "a stream that is printed",
    question="How long does honey keep?",
    answer="For years, in the dark.",
    chunks=[HONEY],
)
def printed():
    response = engine(HONEY, llm=talker("For years, in the dark.")).query(
        "How long does honey keep?"
    )
    assert str(response) == "For years, in the dark."


@app(
    "an asynchronous stream of a query engine",
    question="How many bees are in a hive?",
    answer="Fifty thousand at most.",
    chunks=[BEES],
)
async def async_stream():
    response = await engine(BEES, llm=talker("Fifty thousand at most.")).aquery(
        "How many bees are in a hive?"
    )
    async for _ in response.async_response_gen():
        await asyncio.sleep(0)


@app(
    "a stream of tree summaries",
    question="What about bees and honey?",
    answer="Hives hold many bees, and honey keeps for years.",
    chunks=[BEES, HONEY],
)
def tree_stream():
    llm = talker("Hives hold many bees, and honey keeps for years.")
    response = engine(BEES, HONEY, llm=llm, response_mode="tree_summarize").query(
        "What about bees and honey?"
    )
    for _ in response.response_gen:
        pass


@app(
    "a stream after a refined draft",
    question="What about bees and honey?",
    answer="Fifty thousand bees, and honey that keeps.",
    chunks=[BEES, HONEY],
    absent=["Only bees are spoken of here."],
)
def refined_stream():
    llm = writer("Only bees are spoken of here.", "Fifty thousand bees, and honey that keeps.")
    response = engine(BEES, HONEY, llm=llm, response_mode="refine").query(
        "What about bees and honey?"
    )
    assert str(response) == "Fifty thousand bees, and honey that keeps."


@app("a stream that its reader gives up", status="truncated")
def given_up():
    stream = (
        engine(BEES, llm=writer("Up to fifty thousand of them.")).query("How many?").response_gen
    )
    next(stream)
    stream.close()


@app("an asynchronous chat whose reader is cancelled", status=["cancelled", "truncated"])
async def cancelled():
    response = await engine(BEES, llm=talker("Up to fifty thousand of them.")).aquery("How many?")

    async def read():
        async for _ in response.async_response_gen():
            await asyncio.sleep(10)

    task = asyncio.create_task(read())
    await asyncio.sleep(0.05)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@app(
    "a stream through a router",
    question="How long does honey keep?",
    answer="It keeps for years.",
    chunks=[HONEY],
    absent=[BEES],
)
def router_stream():
    llm = writer("It keeps for years.")
    response = RouterQueryEngine(
        LLMSingleSelector.from_defaults(llm=writer('[{"choice": 2, "reason": "honey"}]')),
        [
            QueryEngineTool.from_defaults(engine(BEES, llm=llm), name="bees", description="Bees"),
            QueryEngineTool.from_defaults(
                engine(HONEY, llm=llm), name="honey", description="Honey"
            ),
        ],
        llm=llm,
    ).query("How long does honey keep?")
    assert str(response) == "It keeps for years."


@app(
    "a synthesizer that streams",
    question="How many bees are in a hive?",
    answer="Many: fifty thousand.",
    chunks=[BEES],
)
def synthesizer_stream():
    response = get_response_synthesizer(
        llm=talker("Many: fifty thousand."), streaming=True
    ).synthesize("How many bees are in a hive?", Shelf(BEES).found)
    for _ in response.response_gen:
        pass


async def sse(question, made):
    """What a server sends, event by event."""
    response = await made.astream_chat(question)
    async for token in response.async_response_gen():
        yield f"data: {token}\n\n"
    yield "data: [DONE]\n\n"


@app(
    "server-sent events of a chat",
    question="How many bees are in a hive?",
    answer="Fifty thousand bees.",
    chunks=[BEES],
)
async def server_sent_events():
    made = ContextChatEngine.from_defaults(
        Shelf(BEES), llm=talker("Fifty thousand bees."), memory=memory()
    )
    async for _ in sse("How many bees are in a hive?", made):
        pass


@app(
    "an agent whose words are forwarded one by one",
    question="How long does honey keep?",
    answer="Years, in the dark.",
    chunks=[HONEY],
)
async def agent_stream():
    def lexicon(word: str) -> str:
        """A lexicon."""
        return HONEY

    async def tokens(question):
        llm = talker(call("lexicon", word="honey"), "Years, in the dark.")
        handler = FunctionAgent(tools=[lexicon], llm=llm).run(question, memory=memory())
        async for event in handler.stream_events():
            if isinstance(event, AgentStream) and event.delta:
                yield event.delta
        await handler

    assert [t async for t in tokens("How long does honey keep?")]


@app(
    "an agent of thoughts whose stream is read",
    question="How long does honey keep?",
    answer="Honey keeps for years.",
    chunks=[HONEY],
    absent=["The lexicon should know that."],
)
async def react_stream():
    def lexicon(word: str) -> str:
        """A lexicon."""
        return HONEY

    llm = writer(
        'Thought: The lexicon should know that.\nAction: lexicon\nAction Input: {"word": "honey"}',
        "Thought: I can answer without using any more tools.\nAnswer: Honey keeps for years.",
    )
    handler = ReActAgent(tools=[lexicon], llm=llm).run("How long does honey keep?", memory=memory())
    async for _ in handler.stream_events():
        pass
    await handler


class Piece(Event):
    text: str


@app(
    "a workflow that streams an engine's tokens and returns the whole text",
    question="How many bees are in a hive?",
    answer="Some fifty thousand.",
    chunks=[BEES],
)
async def workflow_stream():
    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            response = await engine(BEES, llm=talker("Some fifty thousand.")).aquery(ev.question)
            text = ""
            async for token in response.async_response_gen():
                text += token
            return StopEvent(result=text)

    await Desk(timeout=20).run(question="How many bees are in a hive?")


@app(
    "a workflow that returns a stream",
    question="How many bees are in a hive?",
    answer="Fifty thousand or so.",
    chunks=[BEES],
)
async def workflow_returns_stream():
    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            return StopEvent(
                result=await engine(BEES, llm=talker("Fifty thousand or so.")).aquery(ev.question)
            )

    response = await Desk(timeout=20).run(question="How many bees are in a hive?")
    async for _ in response.async_response_gen():
        pass


@app(
    "a generator under the dispatcher's span",
    question="How long does honey keep?",
    answer="Many years long.",
    chunks=[HONEY],
)
def generator_under_span():
    @dispatcher.span
    def stream(question):
        nodes = Shelf(HONEY).retrieve(question)
        for piece in talker("Many years long.").stream_complete(f"{nodes[0].text}\n{question}"):
            yield piece.delta

    assert "".join(stream("How long does honey keep?")) == "Many years long."


@app(
    "an asynchronous generator of a plain function",
    question="How long does honey keep?",
    answer="Years and years.",
    chunks=[HONEY],
)
async def async_generator():
    async def stream(question):
        nodes = await Shelf(HONEY).aretrieve(question)
        async for piece in await talker("Years and years.").astream_complete(
            f"{nodes[0].text}\n{question}"
        ):
            yield piece.delta

    assert [t async for t in stream("How long does honey keep?")]


@app("small talk that streams", status="not_rag")
def simple_stream():
    for _ in (
        SimpleChatEngine.from_defaults(llm=talker("Buzz."), memory=memory())
        .stream_chat("Say something like a bee")
        .response_gen
    ):
        pass


@app(
    "an index whose engine streams with a chat model",
    question="How many bees are in a hive?",
    answer="About fifty thousand bees.",
    chunks=[BEES],
    absent=[HONEY],
)
def index_stream():
    response = (
        index(BEES, HONEY)
        .as_query_engine(
            streaming=True, similarity_top_k=1, llm=talker("About fifty thousand bees.")
        )
        .query("How many bees are in a hive?")
    )
    with redirect_stdout(io.StringIO()):
        response.print_response_stream()

"""Requests of several users that run side by side, or in turns."""

import asyncio
from contextvars import ContextVar

from harness import app
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import (
    Context,
    Event,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from llama_index_fakes import (
    Shelf,
    call,
    memory,
    scored,
    talker,
    when,
    writer,
)

dispatcher = get_dispatcher(__name__)
USER = ContextVar("user")
TREES = {
    "oak": "The oak in the yard was planted in 1890.",
    "lime": "The lime by the church was planted in 1923.",
    "beech": "The beech at the mill was planted in 1951.",
}
SAID = {
    "oak": "The oak dates from 1890.",
    "lime": "The lime dates from 1923.",
    "beech": "The beech dates from 1951.",
}
QUESTIONS = [f"When was the {name} planted?" for name in TREES]


def tree_in(text):
    return next(name for name in TREES if name in text)


class Trees(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [scored(TREES[tree_in(query_bundle.query_str)])]

    async def _aretrieve(self, query_bundle):
        await asyncio.sleep(0.005)
        return self._retrieve(query_bundle)


def answering(make=talker):
    return make(when({f"the {name} planted?": said for name, said in SAID.items()}))


@app(
    "all searches in one loop, then all completions in another",
    question=QUESTIONS[1],
    answer=SAID["lime"],
    chunks=[TREES["lime"]],
    absent=[TREES["oak"], TREES["beech"]],
    cases=3,
    status="not_rag",
)
def loops():
    retriever, llm = Trees(), answering(writer)
    found = {question: retriever.retrieve(question) for question in QUESTIONS}
    for question, nodes in found.items():
        context = "\n".join(node.get_content() for node in nodes)
        str(llm.complete(f"Context: {context}\nQuestion: {question}\nAnswer:"))


@app(
    "gathered searches, then gathered chats in one function",
    question=QUESTIONS[2],
    answer=SAID["beech"],
    chunks=[TREES["beech"]],
    absent=[TREES["oak"], TREES["lime"]],
    cases=3,
    status="not_rag",
)
async def gathers():
    retriever, llm = Trees(), answering()
    found = await asyncio.gather(*(retriever.aretrieve(q) for q in QUESTIONS))

    async def ask(question, nodes):
        text = "\n".join(n.text for n in nodes)
        reply = await llm.achat(
            [ChatMessage(role="system", content=f"Answer from:\n{text}"), ChatMessage(question)]
        )
        return reply.message.content

    await asyncio.gather(*(ask(q, nodes) for q, nodes in zip(QUESTIONS, found, strict=True)))


@app(
    "generators of three users that one thread advances in turn",
    question=QUESTIONS[1],
    answer=SAID["lime"],
    chunks=[TREES["lime"]],
    absent=[TREES["oak"], TREES["beech"]],
    cases=3,
)
def generators():
    retriever, llm = Trees(), answering()

    def serve(question):
        nodes = retriever.retrieve(question)
        yield "searching"
        text = "\n".join(n.text for n in nodes)
        for piece in llm.stream_chat(
            [ChatMessage(role="system", content=f"Answer from:\n{text}"), ChatMessage(question)]
        ):
            yield piece.delta

    open_ = [serve(question) for question in QUESTIONS]
    while open_:
        open_ = [each for each in open_ if next(each, None) is not None]


@app(
    "three users in tasks, each a plain function that streams",
    question=QUESTIONS[0],
    answer=SAID["oak"],
    chunks=[TREES["oak"]],
    absent=[TREES["lime"], TREES["beech"]],
    cases=3,
)
async def tasks():
    retriever, llm = Trees(), answering()

    async def serve(question):
        nodes = await retriever.aretrieve(question)
        text = "\n".join(n.text for n in nodes)
        async for _ in await llm.astream_complete(f"<context>\n{text}\n</context>\n{question}"):
            await asyncio.sleep(0)

    await asyncio.gather(*map(serve, QUESTIONS))


@app(
    "agents of three users in tasks that share one tool and a context variable",
    question="How many days off have I left? (Cem)",
    answer="Cem has 3 days left.",
    chunks=["Cem: 3 days"],
    absent=["Ada: 1 days", "Bea: 2 days"],
    cases=3,
)
async def users():
    days = {"Ada": 1, "Bea": 2, "Cem": 3}

    async def holidays() -> str:
        """Days off."""
        await asyncio.sleep(0.005)
        return f"{USER.get()}: {days[USER.get()]} days"

    async def serve(name):
        USER.set(name)
        agent = FunctionAgent(
            tools=[holidays], llm=talker(call("holidays"), f"{name} has {days[name]} days left.")
        )
        await agent.run(f"How many days off have I left? ({name})", memory=memory())

    await asyncio.gather(*map(serve, days))


@app(
    "decorated functions of two users whose awaits interleave",
    question="What is my seat? (Bo)",
    answer="Bo sits in 4C.",
    chunks=["Bo: seat 4C"],
    absent=["Ann: seat 1A"],
    cases=2,
)
async def decorated():
    seats = {"Ann": "1A", "Bo": "4C"}

    @dispatcher.span
    async def answer(question: str, name: str) -> str:
        nodes = await Shelf(f"{name}: seat {seats[name]}").aretrieve(question)
        await asyncio.sleep(0.005)
        reply = await talker(f"{name} sits in {seats[name]}.").achat(
            [ChatMessage(role="system", content=nodes[0].text), ChatMessage(question)]
        )
        await asyncio.sleep(0.005)
        return reply.message.content

    await asyncio.gather(*(answer(f"What is my seat? ({name})", name) for name in seats))


@app(
    "a tool that asks an engine twice at once",
    question="Compare salt and sugar prices.",
    answer="Salt costs 1 EUR, sugar 2 EUR a kilo.",
    chunks=["Salt: 1 EUR a kilo.", "Sugar: 2 EUR a kilo."],
    absent=["Salt is at 1 EUR.", "Sugar is at 2 EUR."],
)
async def twice():
    class Prices(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [
                scored(
                    "Salt: 1 EUR a kilo."
                    if "salt" in query_bundle.query_str
                    else "Sugar: 2 EUR a kilo."
                )
            ]

    engine = RetrieverQueryEngine.from_args(
        Prices(), llm=talker(when({"Salt:": "Salt is at 1 EUR.", "Sugar:": "Sugar is at 2 EUR."}))
    )

    async def prices(goods: list[str]) -> str:
        """Prices."""
        said = await asyncio.gather(*(engine.aquery(f"price of {each}") for each in goods))
        return "\n".join(map(str, said))

    agent = FunctionAgent(
        tools=[prices],
        llm=talker(
            call("prices", goods=["salt", "sugar"]), "Salt costs 1 EUR, sugar 2 EUR a kilo."
        ),
    )
    await agent.run("Compare salt and sugar prices.", memory=memory())


@app(
    "a workflow with typed events and a list of queries in parallel",
    question="Compare the two hotels.",
    answer="The Astra has a pool; the Bruno has a bar.",
    chunks=["Hotel Astra has a pool.", "Hotel Bruno has a bar."],
)
async def fan():
    class Ask(Event):
        query: str

    class Got(Event):
        nodes: list[NodeWithScore]

    class Flow(Workflow):
        @step
        async def plan(self, ctx: Context, ev: StartEvent) -> Ask | None:
            await ctx.store.set("question", ev.question)
            for name in ("Astra", "Bruno"):
                ctx.send_event(Ask(query=name))

        @step(num_workers=4)
        async def search(self, ev: Ask) -> Got:
            text = {"Astra": "Hotel Astra has a pool.", "Bruno": "Hotel Bruno has a bar."}[ev.query]
            return Got(nodes=await Shelf(text).aretrieve(ev.query))

        @step
        async def answer(self, ctx: Context, ev: Got) -> StopEvent | None:
            got = ctx.collect_events(ev, [Got] * 2)
            if got is None:
                return None
            nodes = [node for each in got for node in each.nodes]
            question = await ctx.store.get("question")
            made = get_response_synthesizer(
                llm=writer("The Astra has a pool; the Bruno has a bar.")
            )
            return StopEvent(result=await made.asynthesize(question, nodes))

    await Flow(timeout=10).run(question="Compare the two hotels.")

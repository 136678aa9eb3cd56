"""Several users at the same time, engines made per request, and threads of servers."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from harness import app
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Shelf, call, index, memory, scored, talker, when, writer

ANN = "Ann Berg's account holds 310 euros."
BEN = "Ben Lund's account is overdrawn by 40 euros."


class Accounts(BaseRetriever):
    """Each user's documents."""

    def _retrieve(self, query_bundle):
        return [scored(ANN if "Ann" in query_bundle.query_str else BEN)]

    async def _aretrieve(self, query_bundle):
        await asyncio.sleep(0)
        return self._retrieve(query_bundle)


def bank():
    said = when({ANN: "You have 310 euros, Ann.", BEN: "You owe the bank 40 euros, Ben."})
    return talker(said)


@app(
    "an engine for each request, asked one after the other",
    question="I am Ben: how am I doing?",
    answer="You owe the bank 40 euros, Ben.",
    chunks=[BEN],
    absent=[ANN, "You have 310 euros, Ann."],
    cases=2,
)
def one_after_the_other():
    for question in ("I am Ann: how am I doing?", "I am Ben: how am I doing?"):
        RetrieverQueryEngine.from_args(Accounts(), llm=bank()).query(question)


@app(
    "one engine asked from many threads",
    question="I am Ben 7: how am I doing?",
    answer="You owe the bank 40 euros, Ben.",
    chunks=[BEN],
    absent=[ANN],
    cases=16,
)
def many_threads():
    engine = RetrieverQueryEngine.from_args(Accounts(), llm=bank())
    questions = [f"I am {'Ann' if n % 2 == 0 else 'Ben'} {n}: how am I doing?" for n in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(engine.query, questions))


@app(
    "one engine asked from many tasks",
    question="I am Ann 6: how am I doing?",
    answer="You have 310 euros, Ann.",
    chunks=[ANN],
    absent=[BEN],
    cases=12,
)
async def many_tasks():
    engine = RetrieverQueryEngine.from_args(Accounts(), llm=bank())
    questions = [f"I am {'Ann' if n % 2 == 0 else 'Ben'} {n}: how am I doing?" for n in range(12)]
    await asyncio.gather(*map(engine.aquery, questions))


@app(
    "a user asks while another user's agent waits for a tool that says the same",
    question="I am Ben: how am I doing?",
    answer="You owe the bank 40 euros, Ben.",
    chunks=[BEN],
    absent=[ANN],
    cases=2,
)
async def while_tool_is_open():
    is_open, asked = asyncio.Event(), asyncio.Event()

    async def audit(name: str) -> str:
        """Audit the last answers of the bank."""
        is_open.set()
        await asked.wait()
        return "Last answer given at the desk: You owe the bank 40 euros, Ben."

    async def ben():
        await is_open.wait()
        engine = RetrieverQueryEngine.from_args(Accounts(), llm=bank())
        await engine.aquery("I am Ben: how am I doing?")
        asked.set()

    other = asyncio.create_task(ben())
    llm = talker(call("audit", name="desk"), "The desk told a customer about a debt of 40 euros.")
    await FunctionAgent(tools=[audit], llm=llm).run("What was said at the desk?", memory=memory())
    await other


@app(
    "the agent whose tool was open while another user asked",
    question="What was said at the desk?",
    answer="The desk told a customer about a debt of 40 euros.",
    chunks=["Last answer given at the desk: You owe the bank 40 euros, Ben."],
    absent=[BEN, ANN],
    cases=2,
)
async def whose_tool_was_open():
    await while_tool_is_open()


@app(
    "two agents of two users, their tools open at the same time",
    question="I am Ann: what have I got?",
    answer="310 euros are on your account, Ann.",
    chunks=[ANN],
    absent=[BEN],
    cases=2,
)
async def two_agents():
    both = asyncio.Barrier(2)

    def clerk(text, said):
        async def account(name: str) -> str:
            """State of an account."""
            await both.wait()
            return text

        return FunctionAgent(tools=[account], llm=talker(call("account", name="me"), said))

    await asyncio.gather(
        clerk(ANN, "310 euros are on your account, Ann.").run(
            "I am Ann: what have I got?", memory=memory()
        ),
        clerk(BEN, "Minus 40 euros, Ben.").run("I am Ben: what have I got?", memory=memory()),
    )


@app(
    "chats of two users, a turn each in turns",
    question="And what can I do about it?",
    answer="You could ask for a loan, Ben.",
    chunks=[BEN],
    absent=[ANN, "You have 310 euros, Ann.", "You owe the bank 40 euros, Ben."],
    cases=4,
)
def two_chats():
    def chat(text, *said):
        return ContextChatEngine.from_defaults(Shelf(text), llm=talker(*said), memory=memory())

    ann = chat(ANN, "You have 310 euros, Ann.", "You could save it.")
    ben = chat(BEN, "You owe the bank 40 euros, Ben.", "You could ask for a loan, Ben.")
    ann.chat("How am I doing, I am Ann?")
    ben.chat("How am I doing, I am Ben?")
    ann.chat("And what should I do with it?")
    ben.chat("And what can I do about it?")


@app(
    "streams of two users that are read in turns",
    question="I am Ann: how am I doing?",
    answer="You have 310 euros, Ann.",
    chunks=[ANN],
    absent=[BEN],
    cases=2,
)
def streams_in_turns():
    engine = RetrieverQueryEngine.from_args(Accounts(), llm=bank(), streaming=True)
    first = engine.query("I am Ann: how am I doing?").response_gen
    second = engine.query("I am Ben: how am I doing?").response_gen
    for pair in zip(first, second, strict=False):
        assert pair
    for stream in (first, second):
        for _ in stream:
            pass


@app(
    "one of two requests fails",
    question="I am Ben: how am I doing?",
    answer="You owe the bank 40 euros, Ben.",
    chunks=[BEN],
    absent=[ANN],
)
async def one_fails():
    def fail(prompt):
        if ANN in prompt:
            raise TimeoutError("the model is overloaded")
        return "You owe the bank 40 euros, Ben."

    engine = RetrieverQueryEngine.from_args(Accounts(), llm=talker(fail))
    await asyncio.gather(
        engine.aquery("I am Ann: how am I doing?"),
        engine.aquery("I am Ben: how am I doing?"),
        return_exceptions=True,
    )


@app(
    "a request that a client gives up while another goes on",
    question="I am Ben: how am I doing?",
    answer="You owe the bank 40 euros, Ben.",
    chunks=[BEN],
    absent=[ANN],
)
async def given_up():
    started = asyncio.Event()

    class Slow(Accounts):
        async def _aretrieve(self, query_bundle):
            if "Ann" in query_bundle.query_str:
                started.set()
                await asyncio.sleep(30)
            return self._retrieve(query_bundle)

    engine = RetrieverQueryEngine.from_args(Slow(), llm=bank())
    ann = asyncio.create_task(engine.aquery("I am Ann: how am I doing?"))
    await started.wait()
    await engine.aquery("I am Ben: how am I doing?")
    ann.cancel()
    with suppress(asyncio.CancelledError):
        await ann


@app(
    "a background job that asks while a user's request runs",
    question="I am Ann: how am I doing?",
    answer="You have 310 euros, Ann.",
    chunks=[ANN],
    absent=[BEN, "Nightly report: one account is overdrawn."],
    cases=2,
)
def background_job():
    inside, done = threading.Event(), threading.Event()

    class Waits(Accounts):
        def _retrieve(self, query_bundle):
            inside.set()
            done.wait(10)
            return super()._retrieve(query_bundle)

    def job():
        inside.wait(10)
        RetrieverQueryEngine.from_args(
            Shelf(BEN), llm=writer("Nightly report: one account is overdrawn.")
        ).query("Which accounts are overdrawn?")
        done.set()

    thread = threading.Thread(target=job)
    thread.start()
    RetrieverQueryEngine.from_args(Waits(), llm=bank()).query("I am Ann: how am I doing?")
    thread.join()


@app(
    "a tool that asks an engine in a thread that inherits the context",
    question="What do we know about Ann?",
    answer="Her account holds 310 euros.",
    chunks=[ANN],
    absent=["Ann is rich, by our standards."],
)
async def tool_in_thread():
    engine = index(ANN).as_query_engine(llm=writer("Ann is rich, by our standards."))

    async def account(name: str) -> str:
        """State of an account."""
        return str(await asyncio.to_thread(engine.query, f"Account of {name}"))

    llm = talker(call("account", name="Ann"), "Her account holds 310 euros.")
    await FunctionAgent(tools=[account], llm=llm).run("What do we know about Ann?", memory=memory())


@app(
    "a tool that asks an engine in a thread of its own, whose run counts for itself",
    question="Account of Ann",
    answer="Ann is rich, by our standards.",
    chunks=[ANN],
    cases=2,
)
async def tool_in_own_thread():
    engine = index(ANN).as_query_engine(llm=writer("Ann is rich, by our standards."))

    def account(name: str) -> str:
        """State of an account."""
        with ThreadPoolExecutor(1) as pool:
            return str(pool.submit(engine.query, f"Account of {name}").result())

    llm = talker(call("account", name="Ann"), "Her account is well filled.")
    await FunctionAgent(tools=[account], llm=llm).run("What do we know about Ann?", memory=memory())


@app(
    "a session that is named by a tag",
    question="And in dollars?",
    answer="About 340 dollars.",
    chunks=[ANN],
    absent=["That makes 310 euros."],
    cases=2,
)
def tagged():
    llm = talker("That makes 310 euros.", "About 340 dollars.")
    with instrument_tags({"session_id": "ann-1"}):
        engine = CondensePlusContextChatEngine.from_defaults(
            Shelf(ANN), llm=llm, memory=memory(), skip_condense=True
        )
        engine.chat("How much have I got, I am Ann?")
        engine.chat("And in dollars?")


@app(
    "workflows of several users at the same time",
    question="I am Ben: how am I doing?",
    answer="You owe the bank 40 euros, Ben.",
    chunks=[BEN],
    absent=[ANN],
    cases=2,
)
async def workflows():
    llm = bank()

    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Accounts().aretrieve(ev.question)
            await asyncio.sleep(0.01)
            said = await llm.acomplete(f"{nodes[0].text}\n{ev.question}")
            return StopEvent(result=said.text)

    desk = Desk(timeout=20)
    await asyncio.gather(
        desk.run(question="I am Ann: how am I doing?"),
        desk.run(question="I am Ben: how am I doing?"),
    )


@app(
    "a shared tool that two agents use one after the other",
    question="I am Ben: may I buy a bicycle?",
    answer="Better not, you owe 40 euros.",
    chunks=[BEN],
    absent=[ANN, "It says plus 310."],
    cases=2,
)
async def shared_tool():
    said = writer(when({ANN: "It says plus 310.", BEN: "It says minus 40."}))
    tool = QueryEngineTool.from_defaults(
        RetrieverQueryEngine.from_args(Accounts(), llm=said), name="account", description="Accounts"
    )
    for name, answer in (
        ("Ann", "Yes, you have 310 euros."),
        ("Ben", "Better not, you owe 40 euros."),
    ):
        llm = talker(call("account", input=f"Account of {name}"), answer)
        await FunctionAgent(tools=[tool], llm=llm).run(
            f"I am {name}: may I buy a bicycle?", memory=memory()
        )

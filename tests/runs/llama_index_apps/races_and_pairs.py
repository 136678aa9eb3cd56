"""Engines that race, and workflows over several searches or with a pair as their result."""

import asyncio

from harness import app
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Shelf, scored, talker


@app(
    "a workflow that returns its answer and the nodes as a pair",
    question="Where is the attic's key?",
    answer="The key hangs by the stove.",
    chunks=["The key to the attic hangs by the stove."],
)
async def pair():
    class Flow(Workflow):
        @step
        async def all(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf("The key to the attic hangs by the stove.").aretrieve(ev.query)
            prompt = f"{nodes[0].text}\n\nQuestion: {ev.query}"
            reply = await talker("The key hangs by the stove.").acomplete(prompt)
            return StopEvent(result=(str(reply), nodes))

    await Flow(timeout=10).run(query="Where is the attic's key?")


@app(
    "two engines that race in a workflow's step",
    question="Which bakery is open?",
    answer="Bakery Sol is open.",
    chunks=["Sol: open until 18."],
    absent=["Luna: closed."],
)
async def race():
    class Slow(BaseRetriever):
        def __init__(self, text, wait):
            super().__init__()
            self.text, self.wait = text, wait

        def _retrieve(self, query_bundle):
            return [scored(self.text)]

        async def _aretrieve(self, query_bundle):
            await asyncio.sleep(self.wait)
            return [scored(self.text)]

    class Flow(Workflow):
        @step
        async def all(self, ev: StartEvent) -> StopEvent:
            engines = [
                RetrieverQueryEngine.from_args(
                    Slow("Luna: closed.", 3), llm=talker("Luna is closed.")
                ),
                RetrieverQueryEngine.from_args(
                    Slow("Sol: open until 18.", 0.01), llm=talker("Bakery Sol is open.")
                ),
            ]
            tasks = [asyncio.create_task(engine.aquery(ev.query)) for engine in engines]
            done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in left:
                task.cancel()
            return StopEvent(result=str(done.pop().result()))

    await Flow(timeout=10).run(query="Which bakery is open?")


@app(
    "two users with the same question in tasks of plain functions",
    question="What is my balance?",
    answer="You have 100 EUR.",
    chunks=["Balance: 100 EUR"],
    absent=["Balance: 10 EUR"],
    cases=2,
)
async def same_question():
    async def serve(amount, wait):
        nodes = await Shelf(f"Balance: {amount} EUR").aretrieve("What is my balance?")
        await asyncio.sleep(wait)
        await talker(f"You have {amount} EUR.").achat(
            [ChatMessage(role="system", content=nodes[0].text), ChatMessage("What is my balance?")]
        )

    await asyncio.gather(serve(10, 0.01), serve(100, 0.03))


@app(
    "a workflow whose steps ask for each of three customers and write one mail",
    question="Write a mail to all customers about their parcels.",
    answer="Ada: delivered. Bo: at the depot. Cy: lost.",
    chunks=["Ada's parcel: delivered", "Bo's parcel: at the depot", "Cy's parcel: lost"],
)
async def mail():
    class One(Event):
        name: str

    class Got(Event):
        text: str

    states = {"Ada": "delivered", "Bo": "at the depot", "Cy": "lost"}

    class Flow(Workflow):
        @step
        async def each(self, ctx: Context, ev: StartEvent) -> One | None:
            await ctx.store.set("task", ev.task)
            for name in states:
                ctx.send_event(One(name=name))

        @step
        async def look(self, ev: One) -> Got:
            nodes = await Shelf(f"{ev.name}'s parcel: {states[ev.name]}").aretrieve(
                f"parcel of {ev.name}"
            )
            return Got(text=nodes[0].text)

        @step
        async def write(self, ctx: Context, ev: Got) -> StopEvent | None:
            got = ctx.collect_events(ev, [Got] * 3)
            if got is None:
                return None
            task = await ctx.store.get("task")
            facts = "\n".join(each.text for each in got)
            reply = await talker("Ada: delivered. Bo: at the depot. Cy: lost.").achat(
                [ChatMessage(role="system", content=f"Facts:\n{facts}"), ChatMessage(task)]
            )
            return StopEvent(result=str(reply.message.content))

    await Flow(timeout=10).run(task="Write a mail to all customers about their parcels.")

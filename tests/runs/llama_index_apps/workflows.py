"""Workflows that applications write themselves."""

import asyncio
from contextlib import suppress

from harness import app
from llama_index.core import get_response_synthesizer
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import (
    Context,
    Event,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from llama_index_fakes import Shelf, call, default_model, index, talker, when, writer

LEASE = "The tenant pays the electricity himself."
REPAIRS = "Repairs up to 100 euros are paid by the tenant."
DEPOSIT = "The deposit is three months' rent."


class Found(Event):
    nodes: list[NodeWithScore]


class Draft(Event):
    text: str
    round: int = 0


class Reviewed(Event):
    remarks: str
    draft: str


def flow(cls, **settings):
    return cls(timeout=20, **settings)


@app(
    "retrieve, then synthesize, as the documentation shows it",
    question="Who pays the electricity?",
    answer="The tenant pays it himself.",
    chunks=[LEASE],
    absent=[DEPOSIT],
)
async def rag_workflow():
    made = index(LEASE, DEPOSIT)

    class Rag(Workflow):
        @step
        async def retrieve(self, ctx: Context, ev: StartEvent) -> Found:
            await ctx.store.set("query", ev.query)
            return Found(nodes=await made.as_retriever(similarity_top_k=1).aretrieve(ev.query))

        @step
        async def synthesize(self, ctx: Context, ev: Found) -> StopEvent:
            synthesizer = get_response_synthesizer(llm=talker("The tenant pays it himself."))
            query = await ctx.store.get("query")
            return StopEvent(result=await synthesizer.asynthesize(query, nodes=ev.nodes))

    await flow(Rag).run(query="Who pays the electricity?")


@app(
    "a workflow whose answer is a plain text of the model",
    question="Who pays small repairs?",
    answer="The tenant, up to 100 euros. The landlord pays within a week.",
    chunks=[REPAIRS],
    invented=["The landlord pays within a week."],
)
async def plain_text():
    class Desk(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(REPAIRS).aretrieve(ev.question)
            prompt = f"Rules:\n{nodes[0].text}\n\nQuestion: {ev.question}"
            llm = writer("The tenant, up to 100 euros. The landlord pays within a week.")
            return StopEvent(result=(await llm.acomplete(prompt)).text)

    await flow(Desk).run(question="Who pays small repairs?")


@app(
    "a draft, a critique and a better answer",
    question="Explain the deposit.",
    answer="The deposit is three months' rent and is paid before moving in.",
    chunks=[DEPOSIT],
    absent=["Deposit equals ninety days of rent.", "Say rent months instead, mention interest."],
    invented=["paid before moving in."],
)
async def critique():
    llm = talker(
        "Deposit equals ninety days of rent.",
        "Say rent months instead, mention interest.",
        "The deposit is three months' rent and is paid before moving in.",
    )

    class Reflect(Workflow):
        @step
        async def write(self, ctx: Context, ev: StartEvent) -> Draft:
            nodes = await Shelf(DEPOSIT).aretrieve(ev.query)
            await ctx.store.set("context", nodes[0].text)
            await ctx.store.set("query", ev.query)
            said = await llm.achat([ChatMessage(f"Context: {nodes[0].text}\nTask: {ev.query}")])
            return Draft(text=said.message.content)

        @step
        async def review(self, ctx: Context, ev: Draft) -> Reviewed:
            said = await llm.achat([ChatMessage(f"Criticise this draft:\n{ev.text}")])
            return Reviewed(remarks=said.message.content, draft=ev.text)

        @step
        async def rewrite(self, ctx: Context, ev: Reviewed) -> StopEvent:
            context, query = await ctx.store.get("context"), await ctx.store.get("query")
            said = await llm.achat(
                [
                    ChatMessage(
                        f"Context: {context}\nTask: {query}\nDraft: {ev.draft}\n"
                        f"Remarks: {ev.remarks}\nRewrite."
                    )
                ]
            )
            return StopEvent(result=said.message.content)

    await flow(Reflect).run(query="Explain the deposit.")


@app(
    "a loop that judges its own answer and tries again",
    question="Explain the deposit.",
    answer="You pay three months' rent as a deposit.",
    chunks=[DEPOSIT],
    absent=["A deposit is when you deposit things.", "bad, too vague"],
)
async def loop():
    llm = writer(
        "A deposit is when you deposit things.",
        "bad, too vague",
        "You pay three months' rent as a deposit.",
        "good",
    )

    class Loop(Workflow):
        @step
        async def write(self, ctx: Context, ev: StartEvent | Reviewed) -> Draft:
            if isinstance(ev, StartEvent):
                await ctx.store.set("query", ev.query)
            query = await ctx.store.get("query")
            nodes = await Shelf(DEPOSIT).aretrieve(query)
            remarks = f"\nThe last try was: {ev.remarks}" if isinstance(ev, Reviewed) else ""
            prompt = f"{nodes[0].text}\n{query}{remarks}"
            return Draft(text=(await llm.acomplete(prompt)).text)

        @step
        async def judge(self, ev: Draft) -> Reviewed | StopEvent:
            verdict = (await llm.acomplete(f"Good or bad? {ev.text}")).text
            if verdict == "good":
                return StopEvent(result=ev.text)
            return Reviewed(remarks=verdict, draft=ev.text)

    await flow(Loop).run(query="Explain the deposit.")


class Part(Event):
    topic: str


class PartDone(Event):
    topic: str
    text: str


@app(
    "branches side by side whose answers a model joins",
    question="What does the tenant pay?",
    answer="Electricity, small repairs and a deposit of three months' rent.",
    chunks=[LEASE, REPAIRS, DEPOSIT],
    absent=[
        "Power bills go to the tenant.",
        "Minor mending is his, too.",
        "Ninety days of rent up front.",
    ],
)
async def branches():
    texts = {"power": LEASE, "repairs": REPAIRS, "deposit": DEPOSIT}
    llm = talker(
        when(
            {
                "Join": "Electricity, small repairs and a deposit of three months' rent.",
                LEASE: "Power bills go to the tenant.",
                REPAIRS: "Minor mending is his, too.",
                DEPOSIT: "Ninety days of rent up front.",
            }
        )
    )

    class Fan(Workflow):
        @step
        async def split(self, ctx: Context, ev: StartEvent) -> Part:
            for topic in texts:
                ctx.send_event(Part(topic=topic))

        @step(num_workers=3)
        async def work(self, ev: Part) -> PartDone:
            nodes = await Shelf(texts[ev.topic]).aretrieve(ev.topic)
            said = await llm.achat([ChatMessage(f"Sum up for the tenant: {nodes[0].text}")])
            return PartDone(topic=ev.topic, text=said.message.content)

        @step
        async def join(self, ctx: Context, ev: PartDone) -> StopEvent:
            parts = ctx.collect_events(ev, [PartDone] * 3)
            if parts is None:
                return None
            listed = "\n".join(f"- {part.topic}: {part.text}" for part in parts)
            said = await llm.achat(
                [ChatMessage(f"Join these for: What does the tenant pay?\n{listed}")]
            )
            return StopEvent(result=said.message.content)

    await flow(Fan).run(query="What does the tenant pay?")


@app(
    "branches side by side that are all the answer",
    question="What about power and repairs?",
    answer=("The tenant buys the power.", "Repairs to 100 euros are the tenant's."),
    chunks=[LEASE, REPAIRS],
    status="no_answer",
)
async def branches_as_answer():
    texts = {"power": LEASE, "repairs": REPAIRS}
    llm = writer(
        when(
            {LEASE: "The tenant buys the power.", REPAIRS: "Repairs to 100 euros are the tenant's."}
        )
    )

    class Fan(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            async def one(topic):
                nodes = await Shelf(texts[topic]).aretrieve(topic)
                return (await llm.acomplete(f"{nodes[0].text}\nWhat about {topic}?")).text

            power, repairs = await asyncio.gather(one("power"), one("repairs"))
            return StopEvent(result={"power": power, "repairs": repairs})

    await flow(Fan).run(query="What about power and repairs?")


@app(
    "a result with answer and sources in a dictionary",
    question="Who pays the electricity?",
    answer="The tenant pays the electricity.",
    chunks=[LEASE],
)
async def dict_result():
    class Desk(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(LEASE).aretrieve(ev.query)
            said = await talker("The tenant pays the electricity.").acomplete(
                f"{nodes[0].text}\n{ev.query}"
            )
            return StopEvent(
                result={"answer": said.text, "sources": [n.text for n in nodes], "took": 0.4}
            )

    await flow(Desk).run(query="Who pays the electricity?")


@app(
    "a result in an envelope",
    question="Who pays the electricity?",
    answer="It is the tenant.",
    chunks=[LEASE],
    status="no_answer",
)
async def envelope():
    class Desk(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(LEASE).aretrieve(ev.query)
            said = await writer("It is the tenant.").acomplete(f"{nodes[0].text}\n{ev.query}")
            return StopEvent(result={"result": "success", "data": {"answer": said.text}})

    await flow(Desk).run(query="Who pays the electricity?")


class Report(BaseModel):
    """A report."""

    summary: str
    key_points: list[str]


@app(
    "a report whose key points are judged as well",
    question="Report on the lease.",
    answer=(
        "The lease makes the tenant pay the electricity.",
        "Repairs up to 100 euros are the tenant's.",
        "Pets are forbidden.",
    ),
    chunks=[LEASE, REPAIRS],
    invented=["Pets are forbidden."],
)
async def report():
    llm = talker(
        call(
            "Report",
            summary="The lease makes the tenant pay the electricity.",
            key_points=["Repairs up to 100 euros are the tenant's.", "Pets are forbidden."],
        )
    )

    class Desk(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            from llama_index.core.prompts import PromptTemplate

            nodes = await Shelf(LEASE, REPAIRS).aretrieve(ev.query)
            made = await llm.astructured_predict(
                Report,
                PromptTemplate("{context}\nTask: {query}"),
                context="\n".join(n.text for n in nodes),
                query=ev.query,
            )
            return StopEvent(result=made)

    await flow(Desk).run(query="Report on the lease.")


class Answered(StopEvent):
    answer: str
    confidence: float


@app(
    "a stop event of one's own with fields",
    question="How high is the deposit?",
    answer="Three months' rent.",
    chunks=[DEPOSIT],
)
async def own_stop_event():
    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> Answered:
            nodes = await Shelf(DEPOSIT).aretrieve(ev.query)
            said = await writer("Three months' rent.").acomplete(f"{nodes[0].text}\n{ev.query}")
            return Answered(answer=said.text, confidence=0.8)

    await flow(Desk).run(query="How high is the deposit?")


class Ask(StartEvent):
    topic: str
    audience: str


@app(
    "a start event with a topic in two words",
    question="small repairs",
    answer="Tenants who are students pay small repairs up to 100 euros.",
    chunks=[REPAIRS],
    status="no_question",
)
async def topic_of_two_words():
    class Desk(Workflow):
        @step
        async def work(self, ev: Ask) -> StopEvent:
            nodes = await Shelf(REPAIRS).aretrieve(ev.topic)
            said = await writer(
                "Tenants who are students pay small repairs up to 100 euros."
            ).acomplete(f"Explain {ev.topic} to {ev.audience}.\n\nMaterial: {nodes[0].text}")
            return StopEvent(result=said.text)

    await flow(Desk).run(
        topic="small repairs", audience="students who rent their first flat in Norway"
    )


@app(
    "a start event with a topic and an audience",
    question="Who pays repairs?",
    answer="As a student you pay small repairs up to 100 euros yourself.",
    chunks=[REPAIRS],
    status="no_question",
)
async def topic_and_audience():
    class Desk(Workflow):
        @step
        async def work(self, ev: Ask) -> StopEvent:
            nodes = await Shelf(REPAIRS).aretrieve(ev.topic)
            said = await talker(
                "As a student you pay small repairs up to 100 euros yourself."
            ).acomplete(f"Write for {ev.audience} about {ev.topic}:\n{nodes[0].text}")
            return StopEvent(result=said.text)

    await flow(Desk).run(topic="Who pays repairs?", audience="students")


@app(
    "a question and an uploaded letter in the start event",
    question="Does the landlord's letter break the rules?",
    answer="Yes: he asks for 300 euros, but tenants pay only repairs up to 100 euros.",
    chunks=[REPAIRS],
    prompt=["Dear tenant, please pay 300 euros for the broken boiler."],
)
async def upload():
    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(REPAIRS).aretrieve(ev.question)
            said = await talker(
                "Yes: he asks for 300 euros, but tenants pay only repairs up to 100 euros."
            ).acomplete(f"Rules: {nodes[0].text}\n\nLetter: {ev.letter}\n\n{ev.question}")
            return StopEvent(result=said.text)

    await flow(Desk).run(
        question="Does the landlord's letter break the rules?",
        letter="Dear tenant, please pay 300 euros for the broken boiler.",
    )


@app(
    "a human is asked in the middle",
    question="How high is my deposit?",
    answer="For flat 7 it is three months' rent, 2,100 euros.",
    chunks=[DEPOSIT],
    prompt=["flat 7, rent 700 euros"],
)
async def human():
    class Desk(Workflow):
        @step
        async def begin(self, ctx: Context, ev: StartEvent) -> InputRequiredEvent:
            await ctx.store.set("query", ev.query)
            return InputRequiredEvent(prefix="Which flat?")

        @step
        async def answer(self, ctx: Context, ev: HumanResponseEvent) -> StopEvent:
            query = await ctx.store.get("query")
            nodes = await Shelf(DEPOSIT).aretrieve(query)
            said = await talker("For flat 7 it is three months' rent, 2,100 euros.").acomplete(
                f"{nodes[0].text}\nThe tenant says: {ev.response}\n{query}"
            )
            return StopEvent(result=said.text)

    handler = flow(Desk).run(query="How high is my deposit?")
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response="flat 7, rent 700 euros"))
    await handler


class Token(Event):
    text: str


@app(
    "a workflow that streams the model's words as events",
    question="Who pays small repairs?",
    answer="The tenant pays repairs up to 100 euros.",
    chunks=[REPAIRS],
)
async def streamed():
    class Desk(Workflow):
        @step
        async def work(self, ctx: Context, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(REPAIRS).aretrieve(ev.query)
            text = ""
            llm = talker("The tenant pays repairs up to 100 euros.")
            async for piece in await llm.astream_complete(f"{nodes[0].text}\n{ev.query}"):
                ctx.write_event_to_stream(Token(text=piece.delta))
                text = piece.text
            return StopEvent(result=text)

    handler = flow(Desk).run(query="Who pays small repairs?")
    assert "".join(
        [event.text async for event in handler.stream_events() if isinstance(event, Token)]
    )
    await handler


@app(
    "a workflow in a workflow",
    question="Who pays the electricity?",
    answer="Final: the tenant does.",
    chunks=[LEASE],
    absent=["Inner desk: he pays it, the tenant."],
)
async def nested():
    class Inner(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(LEASE).aretrieve(ev.query)
            said = await writer("Inner desk: he pays it, the tenant.").acomplete(
                f"{nodes[0].text}\n{ev.query}"
            )
            return StopEvent(result=said.text)

    class Outer(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            inner = await flow(Inner).run(query=ev.query)
            said = await writer("Final: the tenant does.").acomplete(
                f"Make this final: {inner}\n{ev.query}"
            )
            return StopEvent(result=said.text)

    await flow(Outer).run(query="Who pays the electricity?")


class Graded(Event):
    kept: list


@app(
    "corrective retrieval that drops documents and searches the web instead",
    question="May I keep a cat?",
    answer="Courts allow cats in rented flats.",
    prompt=["Court ruling: cats may be kept in rented flats."],
    absent=[DEPOSIT, "irrelevant, off topic", "cat rented flat court"],
)
async def corrective():
    llm = talker(
        when(
            {
                "Is this relevant": "irrelevant, off topic",
                "Rewrite": "cat rented flat court",
                "Court ruling": "Courts allow cats in rented flats.",
            }
        )
    )

    async def web(query):
        return [
            {
                "content": "Court ruling: cats may be kept in rented flats.",
                "url": "https://law.example",
            }
        ]

    class Corrective(Workflow):
        @step
        async def grade(self, ctx: Context, ev: StartEvent) -> Graded:
            await ctx.store.set("query", ev.query)
            kept = []
            for node in await Shelf(DEPOSIT).aretrieve(ev.query):
                verdict = await llm.achat(
                    [ChatMessage(f"Is this relevant to {ev.query!r}? {node.text}")]
                )
                if "irrelevant" not in verdict.message.content:
                    kept.append(node.text)
            return Graded(kept=kept)

        @step
        async def answer(self, ctx: Context, ev: Graded) -> StopEvent:
            query = await ctx.store.get("query")
            better = await llm.achat([ChatMessage(f"Rewrite as a search: {query}")])
            hits = [hit["content"] for hit in await web(better.message.content)]
            context = "\n".join([*ev.kept, *hits])
            said = await llm.achat([ChatMessage(f"Context:\n{context}\n\nQuestion: {query}")])
            return StopEvent(result=said.message.content)

    await flow(Corrective).run(query="May I keep a cat?")


@app(
    "a workflow whose code writes the answer from what it found",
    question="How high is the deposit?",
    answer=f"We found this in your lease: {DEPOSIT}",
    chunks=[DEPOSIT],
)
async def answer_by_code():
    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(DEPOSIT).aretrieve(ev.query)
            return StopEvent(result=f"We found this in your lease: {nodes[0].text}")

    await flow(Desk).run(query="How high is the deposit?")


class Choice(BaseModel):
    """Who pays, and up to which sum."""

    payer: str
    limit: int


@app(
    "a template that writes the answer from a structured reply",
    question="Who pays small repairs?",
    answer="Small repairs are paid by the tenant (limit: 100 euros).",
    chunks=[REPAIRS],
)
async def template():
    llm = talker(call("Choice", payer="the tenant", limit=100))

    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(REPAIRS).aretrieve(ev.query)
            made = (
                await llm.as_structured_llm(Choice).achat(
                    [ChatMessage(f"{nodes[0].text}\n{ev.query}")]
                )
            ).raw
            return StopEvent(
                result=f"Small repairs are paid by {made.payer} (limit: {made.limit} euros)."
            )

    await flow(Desk).run(query="Who pays small repairs?")


@app("a workflow that is cancelled", status="cancelled")
async def cancelled():
    class Slow(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            await Shelf(DEPOSIT).aretrieve(ev.query)
            await asyncio.sleep(30)
            return StopEvent(result="never")

    handler = flow(Slow).run(query="How high is the deposit?")
    await asyncio.sleep(0.05)
    await handler.cancel_run()
    with suppress(Exception):  # the versions differ in what they raise
        await handler


@app("a workflow whose step fails", status="errored")
async def fails():
    class Broken(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            await Shelf(DEPOSIT).aretrieve(ev.query)
            raise ValueError("no such flat")

    with suppress(ValueError):
        await flow(Broken).run(query="How high is the deposit?")


@app(
    "a workflow that has nothing to do with retrieval",
    status=["not_rag", "no_question", "no_answer"],
)
async def ingestion():
    class Ingest(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            with default_model():
                index(*ev.texts)
            return StopEvent(result=len(ev.texts))

    await flow(Ingest).run(texts=[LEASE, DEPOSIT])

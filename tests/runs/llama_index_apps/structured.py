"""Structured replies and outputs: of engines, programs, models and workflows."""

import json

from harness import app
from llama_index.core import PromptTemplate
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.base.response.schema import Response
from llama_index.core.bridge.pydantic import BaseModel, Field
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.core.program import FunctionCallingProgram, LLMTextCompletionProgram
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Shelf, call, index, talker, writer

RAIL = "The night train to Vienna leaves at 22:14 from platform 9."
FARE = "A berth costs 59 euros."


class Trip(BaseModel):
    """A trip."""

    train: str
    leaves: str
    euros: int


class Fact(BaseModel):
    """A fact with its source."""

    fact: str
    source: str


class Facts(BaseModel):
    """Facts."""

    facts: list[Fact]


class Reply(BaseModel):
    """A reply."""

    answer: str
    confidence: float = Field(default=0.5)


def flow(work):
    """A workflow of one step."""

    class Flow(Workflow):
        @step
        async def run_step(self, ev: StartEvent) -> StopEvent:
            return StopEvent(result=await work(ev.question))

    return Flow(timeout=20)


@app(
    "a structured answer whose number is wrong",
    question="When does the train to Vienna leave, and for how much?",
    answer=("night train to Vienna", "22:14", "39"),
    chunks=[RAIL, FARE],
)
def wrong_number():
    llm = talker(call("Trip", train="night train to Vienna", leaves="22:14", euros=39))
    RetrieverQueryEngine.from_args(Shelf(RAIL, FARE), llm=llm, output_cls=Trip).query(
        "When does the train to Vienna leave, and for how much?"
    )


@app(
    "a structured answer of a completion model",
    question="When does the train to Vienna leave?",
    answer="At 22:14 from platform 9.",
    chunks=[RAIL],
)
def completion_model():
    llm = writer(json.dumps({"answer": "At 22:14 from platform 9.", "confidence": 0.9}))
    RetrieverQueryEngine.from_args(Shelf(RAIL), llm=llm, output_cls=Reply).query(
        "When does the train to Vienna leave?"
    )


@app(
    "facts with sources as the result of a workflow",
    question="What do we know about the night train?",
    answer=("It leaves at 22:14.", "A berth costs 59 euros.", "Breakfast is served in bed."),
    chunks=[RAIL, FARE],
    invented=["Breakfast is served in bed."],
)
async def facts():
    llm = talker(
        call(
            "Facts",
            facts=[
                {"fact": "It leaves at 22:14.", "source": "timetable"},
                {"fact": "A berth costs 59 euros.", "source": "prices"},
                {"fact": "Breakfast is served in bed.", "source": "prices"},
            ],
        )
    )

    async def work(question):
        nodes = await Shelf(RAIL, FARE).aretrieve(question)
        return await llm.astructured_predict(
            Facts,
            PromptTemplate("{context}\n{question}"),
            context="\n".join(n.text for n in nodes),
            question=question,
        )

    await flow(work).run(question="What do we know about the night train?")


@app(
    "a list of texts as the result of a workflow",
    question="What should I know about the night train?",
    answer=("It leaves from platform 9.", "Bring 59 euros."),
    chunks=[RAIL, FARE],
)
async def list_of_texts():
    llm = talker("It leaves from platform 9.\nBring 59 euros.")

    async def work(question):
        nodes = await Shelf(RAIL, FARE).aretrieve(question)
        said = await llm.acomplete("\n".join([*(n.text for n in nodes), question]))
        return said.text.split("\n")

    await flow(work).run(question="What should I know about the night train?")


@app(
    "a dictionary with a headline and a body",
    question="Write a note about the night train.",
    answer=("Off to Vienna!", "Every evening at 22:14 the train leaves from platform 9."),
    chunks=[RAIL],
)
async def headline_and_body():
    llm = writer(
        json.dumps(
            {
                "headline": "Off to Vienna!",
                "body": "Every evening at 22:14 the train leaves from platform 9.",
            }
        )
    )

    async def work(question):
        nodes = await Shelf(RAIL).aretrieve(question)
        return json.loads((await llm.acomplete(f"{nodes[0].text}\n{question}")).text)

    await flow(work).run(question="Write a note about the night train.")


@app(
    "a draft and its critique in the result",
    question="Write about the fare.",
    answer="A berth is 59 euros.",
    chunks=[FARE],
    status="no_answer",
)
async def draft_and_critique():
    llm = talker("A berth is 59 euros.", "Rather dry, but right.")

    async def work(question):
        nodes = await Shelf(FARE).aretrieve(question)
        draft = (await llm.acomplete(f"{nodes[0].text}\n{question}")).text
        critique = (await llm.acomplete(f"Criticise: {draft}")).text
        return {"answer": draft, "critique": critique}

    await flow(work).run(question="Write about the fare.")


@app(
    "a program that fills a form from what was found",
    question="When does the train to Vienna leave, and for how much?",
    answer="Train: night train, leaves 22:14, 59 euros",
    chunks=[RAIL, FARE],
)
async def program():
    llm = talker(call("Trip", train="night train", leaves="22:14", euros=59))

    async def work(question):
        nodes = await Shelf(RAIL, FARE).aretrieve(question)
        made = await FunctionCallingProgram.from_defaults(
            output_cls=Trip, llm=llm, prompt_template_str="{context}\n{question}"
        ).acall(context="\n".join(n.text for n in nodes), question=question)
        return f"Train: {made.train}, leaves {made.leaves}, {made.euros} euros"

    await flow(work).run(question="When does the train to Vienna leave, and for how much?")


@app(
    "a program of a completion model with a parser",
    question="What does a berth cost?",
    answer="59 euros for a berth.",
    chunks=[FARE],
)
async def text_program():
    llm = writer(json.dumps({"answer": "59 euros for a berth.", "confidence": 1.0}))

    async def work(question):
        nodes = await Shelf(FARE).aretrieve(question)
        made = LLMTextCompletionProgram.from_defaults(
            output_parser=PydanticOutputParser(output_cls=Reply),
            prompt_template_str="{context}\n{question}",
            llm=llm,
        )(context=nodes[0].text, question=question)
        return made.answer

    await flow(work).run(question="What does a berth cost?")


@app(
    "a structured model in an engine of one's own",
    question="What does a berth cost?",
    answer="It costs 59 euros.",
    chunks=[FARE],
)
def structured_llm():
    class Own(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            nodes = Shelf(FARE).retrieve(query_str)
            reply = self.llm.as_structured_llm(Reply).chat(
                [ChatMessage(f"{nodes[0].text}\n{query_str}")]
            )
            return Response(reply.raw.answer, source_nodes=nodes)

    Own(llm=talker(call("Reply", answer="It costs 59 euros.", confidence=0.9))).query(
        "What does a berth cost?"
    )


@app(
    "a classification before the answer",
    question="What does a berth cost?",
    answer="59 euros each.",
    chunks=[FARE],
    absent=["topic: fares, mood: curious"],
)
def classified():
    class Own(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            kind = self.llm.complete(f"Classify: {query_str}").text
            found = Shelf(FARE) if "fares" in kind else Shelf(RAIL)
            nodes = found.retrieve(query_str)
            return self.llm.complete(f"Topic: {kind}\n{nodes[0].text}\n{query_str}").text

    Own(llm=writer("topic: fares, mood: curious", "59 euros each.")).query(
        "What does a berth cost?"
    )


@app(
    "JSON of the model that code turns into Markdown",
    question="Compare the train's data.",
    answer=("| leaves | 22:14 |", "| euros | 59 |"),
    chunks=[RAIL, FARE],
)
async def markdown():
    llm = talker(json.dumps({"leaves": "22:14", "euros": 59}))

    async def work(question):
        nodes = await Shelf(RAIL, FARE).aretrieve(question)
        said = await llm.acomplete("\n".join([*(n.text for n in nodes), question]))
        rows = json.loads(said.text)
        return "\n".join(f"| {key} | {value} |" for key, value in rows.items())

    await flow(work).run(question="Compare the train's data.")


@app(
    "facts that a model extracts first, and an answer from them",
    question="What do I need for the night train?",
    answer="Be at platform 9 by 22:14 and bring 59 euros. Pillows are extra.",
    chunks=[RAIL, FARE],
    absent=["berth is fifty-nine, pillows are extra", "starts 22:14"],
    invented=["Pillows are extra."],
)
async def extracted_first():
    extract = talker(
        call(
            "Facts",
            facts=[
                {"fact": "starts 22:14", "source": "a"},
                {"fact": "berth is fifty-nine, pillows are extra", "source": "b"},
            ],
        )
    )
    write = talker("Be at platform 9 by 22:14 and bring 59 euros. Pillows are extra.")

    async def work(question):
        nodes = await Shelf(RAIL, FARE).aretrieve(question)
        made = await extract.astructured_predict(
            Facts, PromptTemplate("{context}"), context="\n".join(n.text for n in nodes)
        )
        listed = "\n".join(f"* {fact.fact}" for fact in made.facts)
        return (await write.acomplete(f"Facts:\n{listed}\n\n{question}")).text

    await flow(work).run(question="What do I need for the night train?")


@app(
    "an answer with the quotes that support it",
    question="Where does the train leave?",
    answer=("From platform 9.",),
    chunks=[RAIL],
)
async def with_quotes():
    class Quoted(BaseModel):
        """An answer with quotes."""

        answer: str
        quotes: list[str]

    llm = talker(call("Quoted", answer="From platform 9.", quotes=["from platform 9"]))

    async def work(question):
        nodes = await Shelf(RAIL).aretrieve(question)
        return await llm.astructured_predict(
            Quoted,
            PromptTemplate("{context}\n{question}"),
            context=nodes[0].text,
            question=question,
        )

    await flow(work).run(question="Where does the train leave?")


@app(
    "documents in the result beside the answer",
    question="Where does the train leave?",
    answer="Platform 9 is the place.",
    chunks=[RAIL],
    absent=["The buffet is closed."],
)
async def with_documents():
    llm = talker("Platform 9 is the place.")

    async def work(question):
        nodes = (
            await index(RAIL, "The buffet is closed.")
            .as_retriever(similarity_top_k=2)
            .aretrieve(question)
        )
        best = [n for n in nodes if "train" in n.text]
        said = await llm.acomplete(f"{best[0].text}\n{question}")
        return {"response": said.text, "source_nodes": nodes, "latency": 0.3}

    await flow(work).run(question="Where does the train leave?")

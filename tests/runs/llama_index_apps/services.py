"""Applications in the styles of services: tenants, typed outputs, tables, memories, threads."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from harness import app
from llama_index.core import Document, PromptTemplate
from llama_index.core.agent.workflow import AgentStream, AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.memory import ChatSummaryMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Shelf, call, following, index, memory, scored, talker, when, writer

PLANS = {
    "north": "The plan of Nordbank includes two seats and costs 40 euros a month.",
    "south": "The plan of Sudbank includes nine seats and costs 95 euros a month.",
}


@app(
    "two tenants in one index, who ask at once through filtered engines",
    question="What does my plan cost, Sudbank?",
    answer="It costs 95 euros a month. The first month is free.",
    chunks=[PLANS["south"]],
    absent=[PLANS["north"]],
    invented=["The first month is free."],
    cases=2,
)
async def tenants():
    documents = [Document(text=text, metadata={"tenant": name}) for name, text in PLANS.items()]
    held = index(*documents)

    async def ask(name, question, price):
        only = MetadataFilters(filters=[ExactMatchFilter(key="tenant", value=name)])
        llm = writer(f"It costs {price} euros a month. The first month is free.")
        engine = held.as_query_engine(llm=llm, filters=only)
        return await engine.aquery(question)

    await asyncio.gather(
        ask("north", "What does my plan cost, Nordbank?", 40),
        ask("south", "What does my plan cost, Sudbank?", 95),
    )


class Fee(BaseModel):
    """A fee."""

    name: str
    euros: int


class Quote(BaseModel):
    """A quote."""

    summary: str
    fees: list[Fee]
    is_final: bool
    remarks: str | None = None
    valid_for: str


@app(
    "a workflow whose typed result has a list and an invented field",
    question="What would the move cost?",
    answer=("The move costs 480 euros in all.", "480", "two vans", "fourteen days"),
    chunks=["A van costs 480 euros.", "A lift costs 60 euros."],
    invented=["fourteen days"],
)
async def typed():
    said = {
        "summary": "The move costs 480 euros in all.",
        "fees": [{"name": "two vans", "euros": 480}],
        "is_final": True,
        "valid_for": "fourteen days",
    }

    class Desk(Workflow):
        @step
        async def quote(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf("A van costs 480 euros.", "A lift costs 60 euros.").aretrieve(
                ev.question
            )
            notes = "\n".join(each.text for each in nodes)
            template = PromptTemplate("{notes}\n\n{question}")
            quote = await writer(json.dumps(said)).astructured_predict(
                Quote, template, notes=notes, question=ev.question
            )
            return StopEvent(result=quote)

    await Desk(timeout=20).run(question="What would the move cost?")


REPORTS = [
    "January: 120 parcels arrived late because of snow.",
    "February: 45 parcels arrived late because of a strike.",
]


class Part(Event):
    """A report to read."""

    report: str


class Read(Event):
    """A report that was read."""

    found: str


@app(
    "a fan-out over reports whose JSON replies are collected and reduced",
    question="Why were parcels late?",
    answer="165 parcels were late, because of snow and a strike. A driver overslept.",
    prompt=REPORTS,
    absent=["a driver overslept in February"],
    invented=["A driver overslept."],
)
async def mapped():
    llm = writer(
        when(
            {
                "Join": "165 parcels were late, because of snow and a strike. A driver overslept.",
                "January:": json.dumps({"late": 120, "why": "there was snow in January"}),
                "February:": json.dumps(
                    {"late": 45, "why": "a strike, and a driver overslept in February"}
                ),
            }
        )
    )

    class Desk(Workflow):
        @step
        async def split(self, ctx: Context, ev: StartEvent) -> Part | None:
            await ctx.store.set("question", ev.question)
            for report in REPORTS:
                ctx.send_event(Part(report=report))
            return None

        @step
        async def read(self, ev: Part) -> Read:
            said = json.loads((await llm.acomplete(f"JSON of this:\n{ev.report}")).text)
            return Read(found=f"{said['late']} late: {said['why']}")

        @step
        async def join(self, ctx: Context, ev: Read) -> StopEvent | None:
            parts = ctx.collect_events(ev, [Read] * len(REPORTS))
            if parts is None:
                return None
            question = await ctx.store.get("question")
            notes = "\n".join(each.found for each in parts)
            return StopEvent(result=(await llm.acomplete(f"Join:\n{notes}\n{question}")).text)

    await Desk(timeout=20).run(question="Why were parcels late?")


STATIONS = [("Bergen", 412, 3), ("Oslo S", 988, 11), ("Voss", 77, 2)]


@app(
    "an engine that writes rows of a table as Markdown",
    question="Which station has the longest delays?",
    answer="Oslo S, with 11 minutes. It was rebuilt in 1980.",
    prompt=["| Oslo S | 988 | 11 |", "| station | trains | delay in minutes |"],
    invented=["It was rebuilt in 1980."],
)
def table():
    class Table(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            rows = "\n".join(f"| {' | '.join(map(str, row))} |" for row in STATIONS)
            head = "| station | trains | delay in minutes |\n|---|---|---|"
            llm = writer("Oslo S, with 11 minutes. It was rebuilt in 1980.")
            return llm.complete(f"{head}\n{rows}\n\n{query_str}").text

    Table().query("Which station has the longest delays?")


class Facts(BaseNodePostprocessor):
    """Keeps the facts that hold now, and writes them as edges."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [
            NodeWithScore(node=TextNode(text=f"Ada -[{each.metadata['edge']}]-> {each.text}"))
            for each in nodes
            if each.metadata["valid"]
        ]


@app(
    "facts of a graph memory with dates, that a postprocessor writes as edges",
    question="Where does Ada work now?",
    answer="Ada works at Corvus since March 2024. She likes it there.",
    chunks=["Ada -[works_at since 2024-03]-> Corvus"],
    absent=["Otter"],
    invented=["She likes it there."],
)
async def graph_memory():
    facts = Shelf(
        scored("Otter", metadata={"edge": "works_at until 2024-02", "valid": False}),
        scored("Corvus", metadata={"edge": "works_at since 2024-03", "valid": True}),
    )
    engine = RetrieverQueryEngine.from_args(
        facts,
        llm=writer("Ada works at Corvus since March 2024. She likes it there."),
        node_postprocessors=[Facts()],
    )
    await engine.aquery("Where does Ada work now?")


HOURS = ["On weekdays the museum opens at nine.", "On Sundays the museum opens at ten."]
GUIDE = "The guide is called Per."


def summed_up(engine_class, llm):
    turns = ChatSummaryMemoryBuffer.from_defaults(llm=llm, token_limit=60)
    engine = engine_class.from_defaults(Shelf(*HOURS), llm=llm, memory=turns)
    for question in ("When does it open on weekdays?", "And on Mondays?", "And on Sundays?"):
        engine.chat(question)


TOURS = "It opens at nine. A guide named Per shows the ship, in four languages and with a lamp."
SCRIPT = {
    "concise summary": "The user asked for hours. A guide named Per shows the ship to visitors.",
    "weekdays?": TOURS,
    "And on Mondays?": "I do not know about Mondays, but Per may tell you more at the door.",
    "And on Sundays?": f"On Sundays it opens at ten. {GUIDE}",
}
SUMMED_UP = {
    "question": "And on Sundays?",
    "answer": f"On Sundays it opens at ten. {GUIDE}",
    "chunks": HOURS,
    "absent": ["A guide named Per shows the ship"],
    "invented": [GUIDE],
    "cases": 3,
}


def last_asked(prompt):
    """The reply to the summary's prompt, or to the last question in a prompt."""
    if "concise summary" in prompt:
        return SCRIPT["concise summary"]
    return SCRIPT[max(list(SCRIPT)[1:], key=prompt.rfind)]


@app("three turns that a memory sums up", **SUMMED_UP)
def summed_up_for_a_chat_model():
    summed_up(ContextChatEngine, talker(last_asked))


@app("three turns that a memory sums up for a completion model", **SUMMED_UP)
def summed_up_for_a_completion_model():
    summed_up(ContextChatEngine, writer(last_asked))


HITS = ["Larch lasts thirty years outdoors.", "Spruce needs paint.", "Oak costs 90 euros a metre."]


class Graded(BaseNodePostprocessor):
    """Keeps what a model gives a high grade, with the grade in front."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        grades = json.loads(talker("[0.94, 0.08, 0.41]").complete(str(len(nodes))).text)
        ranked = sorted(zip(grades, nodes, strict=True), key=lambda each: -each[0])
        return [
            NodeWithScore(node=TextNode(text=f"({grade:.2f}) {each.text}"), score=grade)
            for grade, each in ranked[:2]
        ]


@app(
    "several queries of a model, and a reranker that writes its grades into the nodes",
    question="Which wood lasts outdoors?",
    answer="Larch lasts thirty years outdoors. Termites avoid it.",
    chunks=[HITS[0], HITS[2]],
    absent=[HITS[1]],
    invented=["Termites avoid it."],
)
def fused():
    fusion = QueryFusionRetriever(
        [Shelf(*HITS)],
        llm=writer("durable wood\nwood for a terrace"),
        num_queries=3,
        similarity_top_k=3,
        use_async=False,
    )
    engine = RetrieverQueryEngine.from_args(
        fusion,
        llm=writer("Larch lasts thirty years outdoors. Termites avoid it."),
        node_postprocessors=[Graded()],
    )
    engine.query("Which wood lasts outdoors?")


@app(
    "agents of a team whose tokens and events are streamed",
    question="How deep is the lake?",
    answer="The lake is 461 metres deep. A submarine lies on its ground.",
    chunks=["Lake Tinn is 461 metres deep."],
    absent=["I hand this to the diver."],
    invented=["A submarine lies on its ground."],
)
async def team():
    def measure(lake: str) -> str:
        """Measures a lake."""
        return "Lake Tinn is 461 metres deep."

    desk = FunctionAgent(
        name="desk",
        description="Talks to visitors.",
        tools=[],
        can_handoff_to=["diver"],
        llm=talker(call("handoff", to_agent="diver", reason="I hand this to the diver.")),
    )
    diver = FunctionAgent(
        name="diver",
        description="Knows lakes.",
        tools=[measure],
        llm=talker(
            call("measure", lake="Tinn"),
            "The lake is 461 metres deep. A submarine lies on its ground.",
        ),
    )
    handler = AgentWorkflow(agents=[desk, diver], root_agent="desk").run("How deep is the lake?")
    seen = [event async for event in handler.stream_events() if isinstance(event, AgentStream)]
    assert seen
    await handler


@app(
    "sub-questions in a pool of threads inside a traced function",
    question="What should a visitor know?",
    answer="Tickets cost 12 euros and dogs are welcome. Parking is free.",
    chunks=["A ticket costs 12 euros.", "Dogs on a lead are welcome."],
    absent=["Tickets are 12 euros, says the desk."],
    invented=["Parking is free."],
)
def pooled():
    answers = {
        "price": ("A ticket costs 12 euros.", "Tickets are 12 euros, says the desk."),
        "dogs": ("Dogs on a lead are welcome.", "Dogs are welcome. Parking is free."),
    }

    def part(topic):
        text, said = answers[topic]
        engine = RetrieverQueryEngine.from_args(Shelf(text), llm=writer(said))
        return str(engine.query(f"What about {topic}?"))

    @following().trace
    def ask(question):
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(copy_context().run, part, topic) for topic in answers]
            parts = [each.result() for each in waiting]
        said = "Tickets cost 12 euros and dogs are welcome. Parking is free."
        return talker(said).complete("Join:\n" + "\n".join(parts) + f"\n{question}").text

    ask("What should a visitor know?")


@app(
    "a condensed second question about lines of a table",
    question="And how much was it in 2023?",
    answer="In 2023 it was 14 million. The director was sacked.",
    chunks=["2022: 12 million", "2023: 14 million"],
    absent=["Profit in 2022 was 12 million, says the board."],
    invented=["The director was sacked."],
)
def condensed_table():
    llm = talker(
        "What was the profit in 2023?", "In 2023 it was 14 million. The director was sacked."
    )
    history = [
        ChatMessage(role=MessageRole.USER, content="What was the profit in 2022?"),
        ChatMessage(
            role=MessageRole.ASSISTANT, content="Profit in 2022 was 12 million, says the board."
        ),
    ]
    engine = CondensePlusContextChatEngine.from_defaults(
        Shelf("2022: 12 million", "2023: 14 million"), llm=llm, memory=memory()
    )
    engine.chat("And how much was it in 2023?", chat_history=history)

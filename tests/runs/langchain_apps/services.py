"""Applications in the styles of services: tenants, typed outputs, tables, memories, threads."""

import asyncio
import json
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Annotated, TypedDict

from harness import app
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ModelRequest,
    SummarizationMiddleware,
    wrap_model_call,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.tools import tool
from langchain_fakes import calling, chat, documents, finding, joined
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send
from pydantic import BaseModel

PLANS = {
    "north": "The plan of Nordbank includes two seats and costs 40 euros a month.",
    "south": "The plan of Sudbank includes nine seats and costs 95 euros a month.",
}


@dataclass
class Tenant:
    """The tenant of a request."""

    name: str


@app(
    "two tenants who ask the same at once, with the tenant in the runtime's context",
    question="What does my plan cost, Sudbank?",
    answer="It costs 95 euros a month. The first month is free.",
    chunks=[PLANS["south"]],
    absent=[PLANS["north"]],
    invented=["The first month is free."],
    cases=2,
)
async def tenants(config):
    class State(TypedDict, total=False):
        question: str
        notes: list[Document]
        answer: str

    async def search(state: State, runtime: Runtime[Tenant]):
        await asyncio.sleep(0)
        found = finding(PLANS[runtime.context.name])
        return {"notes": await found.ainvoke(state["question"])}

    async def answer(state: State, runtime: Runtime[Tenant]):
        price = {"north": "40", "south": "95"}[runtime.context.name]
        model = chat(f"It costs {price} euros a month. The first month is free.")
        prompt = f"{joined(state['notes'])}\n\n{state['question']}"
        return {"answer": (await model.ainvoke(prompt)).content}

    graph = StateGraph(State, context_schema=Tenant).add_sequence([search, answer])
    compiled = graph.add_edge(START, "search").compile()
    asked = {
        "north": "What does my plan cost, Nordbank?",
        "south": "What does my plan cost, Sudbank?",
    }
    await asyncio.gather(
        *(
            compiled.ainvoke({"question": question}, config, context=Tenant(name))
            for name, question in asked.items()
        )
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
    "an agent whose tool and whose answer are typed, with a list and an invented field",
    question="What would the move cost?",
    answer=("The move costs 480 euros in all.", "480", "two vans", "fourteen days"),
    chunks=["name='van' euros=480", "name='lift' euros=60"],
    invented=["fourteen days"],
)
def typed(config):
    @tool
    def fees(distance: int) -> list[Fee]:
        """The fees of a move."""
        return [Fee(name="van", euros=480), Fee(name="lift", euros=60)]

    said = {
        "summary": "The move costs 480 euros in all.",
        "fees": [{"name": "two vans", "euros": 480}],
        "is_final": True,
        "valid_for": "fourteen days",
    }
    model = chat(calling("fees", distance=12), calling("Quote", **said))
    agent = create_agent(model, [fees], response_format=ToolStrategy(Quote))
    agent.invoke({"messages": [("user", "What would the move cost?")]}, config)


REPORTS = [
    "January: 120 parcels arrived late because of snow.",
    "February: 45 parcels arrived late because of a strike.",
]


@app(
    "a map over parts of a table that gives JSON, and its reduction",
    question="Why were parcels late?",
    answer="165 parcels were late, because of snow and a strike. A driver overslept.",
    prompt=REPORTS,
    absent=["a driver overslept in February"],
    invented=["A driver overslept."],
)
def mapped(config):
    class State(TypedDict, total=False):
        question: str
        report: str
        found: Annotated[list[str], lambda a, b: a + b]
        answer: str

    replies = {
        REPORTS[0]: json.dumps({"late": 120, "why": "there was snow in January"}),
        REPORTS[1]: json.dumps({"late": 45, "why": "a strike, and a driver overslept in February"}),
    }

    def fan_out(state: State):
        return [Send("read", {"report": each, "question": state["question"]}) for each in REPORTS]

    def read(state: State):
        model = chat(replies[state["report"]])
        said = (model | JsonOutputParser()).invoke(f"JSON of this:\n{state['report']}")
        return {"found": [f"{said['late']} late: {said['why']}"]}

    def reduce(state: State):
        prompt = f"{state['question']}\n" + "\n".join(state["found"])
        said = "165 parcels were late, because of snow and a strike. A driver overslept."
        return {"answer": chat(said).invoke(prompt).content}

    graph = StateGraph(State).add_node(read).add_node("reduce", reduce)
    graph.add_conditional_edges(START, fan_out, ["read"])
    graph.add_edge("read", "reduce").add_edge("reduce", END)
    graph.compile().invoke({"question": "Why were parcels late?"}, config)


CSV = "station,trains,delay_minutes\nBergen,412,3\nOslo S,988,11\nVoss,77,2"


@app(
    "an interpreter that prints what code made of a table",
    question="Which station has the longest delays?",
    answer="Oslo S, with 11 minutes on average. It was rebuilt in 1980.",
    chunks=["Oslo S 988 11"],
    allowed=[CSV],
    absent=["frame.sort_values"],
    invented=["It was rebuilt in 1980."],
)
def interpreter(config):
    @tool
    def python(code: str) -> str:
        """Runs code over the table `frame`."""
        rows = [line.split(",") for line in CSV.splitlines()[1:]]
        return " ".join(max(rows, key=lambda row: int(row[2])))

    model = chat(
        calling("python", code="print(frame.sort_values('delay_minutes').iloc[-1])"),
        "Oslo S, with 11 minutes on average. It was rebuilt in 1980.",
    )
    agent = create_agent(model, [python], system_prompt="The frame has station, trains, delay.")
    agent.invoke({"messages": [("user", "Which station has the longest delays?")]}, config)


@app(
    "facts of a graph memory with dates, that a middleware puts into the prompt",
    question="Where does Ada work now?",
    answer="Ada works at Corvus since March 2024. She likes it there.",
    prompt=["Ada -[works_at since 2024-03]-> Corvus"],
    absent=["Ada -[works_at until 2024-02]-> Otter"],
    invented=["She likes it there."],
)
def graph_memory(config):
    store = InMemoryStore()
    store.put(("ada",), "1", {"fact": "Ada -[works_at until 2024-02]-> Otter", "valid": False})
    store.put(("ada",), "2", {"fact": "Ada -[works_at since 2024-03]-> Corvus", "valid": True})

    @wrap_model_call
    def remember(request: ModelRequest, handler):
        held = request.runtime.store.search(("ada",))
        facts = "\n".join(item.value["fact"] for item in held if item.value["valid"])
        return handler(request.override(system_message=SystemMessage(f"Known:\n{facts}")))

    agent = create_agent(
        chat("Ada works at Corvus since March 2024. She likes it there."),
        [],
        middleware=[remember],
        store=store,
    )
    agent.invoke({"messages": [("user", "Where does Ada work now?")]}, config)


@app(
    "three turns, of which a middleware sums up the first",
    question="And on Sundays?",
    answer="On Sundays it opens at ten. The guide is called Per.",
    chunks=["On Sundays the museum opens at ten."],
    absent=["A guide named Per shows the ship"],
    invented=["The guide is called Per."],
    cases=3,
)
def summed_up(config):
    @tool
    def hours(day: str) -> str:
        """Opening hours."""
        return {
            "Sunday": "On Sundays the museum opens at ten.",
            "Monday": "On Mondays the museum is closed.",
        }.get(day, "On weekdays the museum opens at nine.")

    model = chat(
        calling("hours", day="Tuesday"),
        "It opens at nine. A guide named Per shows the ship.",
        calling("hours", day="Monday"),
        "On Mondays it is closed.",
        calling("hours", day="Sunday"),
        "On Sundays it opens at ten. The guide is called Per.",
    )
    summing = SummarizationMiddleware(
        model=chat("The museum opens at nine. A guide named Per shows the ship to visitors."),
        trigger=("messages", 6),
        keep=("messages", 3),
    )
    agent = create_agent(model, [hours], middleware=[summing], checkpointer=InMemorySaver())
    thread = {**config, "configurable": {"thread_id": "museum"}}
    for question in ("When does it open on Tuesdays?", "And on Mondays?", "And on Sundays?"):
        agent.invoke({"messages": [HumanMessage(question)]}, thread)


HITS = ["Larch lasts thirty years outdoors.", "Spruce needs paint.", "Oak costs 90 euros a metre."]


@app(
    "passages that a reranker numbers and scores in the prompt",
    question="Which wood lasts outdoors?",
    answer="Larch lasts thirty years outdoors. Termites avoid it.",
    chunks=[HITS[0], HITS[2]],
    absent=[HITS[1]],
    invented=["Termites avoid it."],
)
async def scored(config):
    grader = chat('{"scores": [0.94, 0.08, 0.41]}') | JsonOutputParser()

    async def rerank(given):
        listing = "\n".join(f"{n}. {doc.page_content}" for n, doc in enumerate(given["found"]))
        scores = (await grader.ainvoke(f"Score for {given['question']!r}:\n{listing}"))["scores"]
        ranked = sorted(zip(scores, given["found"], strict=True), key=lambda each: -each[0])
        return "\n".join(f"({score:.2f}) {doc.page_content}" for score, doc in ranked[:2])

    chain = (
        RunnableParallel(question=RunnablePassthrough(), found=finding(*HITS))
        | RunnablePassthrough.assign(notes=RunnableLambda(rerank))
        | ChatPromptTemplate.from_template("{notes}\n\n{question}")
        | chat("Larch lasts thirty years outdoors. Termites avoid it.")
        | StrOutputParser()
    )
    assert await chain.ainvoke("Which wood lasts outdoors?", config)


@app(
    "several queries whose documents a tool gives as a numbered answer in its artifact",
    question="Compare the two ferries.",
    answer="The Fjordline takes 40 minutes, the Kystline 55. Both serve waffles.",
    chunks=["The Fjordline takes 40 minutes.", "The Kystline takes 55 minutes."],
    invented=["Both serve waffles."],
)
def compared(config):
    shelf = {
        "Fjordline": documents("The Fjordline takes 40 minutes."),
        "Kystline": documents("The Kystline takes 55 minutes."),
    }

    @tool(response_format="content_and_artifact")
    def search(queries: list[str]) -> tuple[str, dict]:
        """Searches for each query."""
        found = {query: shelf[query] for query in queries}
        lines = [f"{n}) {docs[0].page_content}" for n, docs in enumerate(found.values(), 1)]
        return "\n".join(lines), {"by_query": found}

    said = "The Fjordline takes 40 minutes, the Kystline 55. Both serve waffles."
    agent = create_agent(chat(calling("search", queries=["Fjordline", "Kystline"]), said), [search])
    for _ in agent.stream(
        {"messages": [("user", "Compare the two ferries.")]},
        config,
        stream_mode=["messages", "updates"],
    ):
        pass


@app(
    "a node that writes progress and tokens to a stream of its own",
    question="How deep is the lake?",
    answer="The lake is 461 metres deep. A submarine lies on its ground.",
    chunks=["Lake Tinn is 461 metres deep."],
    absent=["Searching the lakes"],
    invented=["A submarine lies on its ground."],
)
async def written(config):
    class State(MessagesState):
        notes: str

    async def search(state: State):
        get_stream_writer()({"status": "Searching the lakes"})
        found = await finding("Lake Tinn is 461 metres deep.").ainvoke("lake")
        return Command(update={"notes": joined(found)}, goto="answer")

    async def answer(state: State):
        model = chat("The lake is 461 metres deep. A submarine lies on its ground.")
        write, said = get_stream_writer(), None
        async for piece in model.astream([SystemMessage(state["notes"]), *state["messages"]]):
            write({"token": piece.content})
            said = piece if said is None else said + piece
        return {"messages": [said]}

    graph = StateGraph(State).add_node(search).add_node(answer).add_edge(START, "search")
    pieces = graph.compile().astream(
        {"messages": [HumanMessage("How deep is the lake?")]}, config, stream_mode="custom"
    )
    assert [piece async for piece in pieces]


@app(
    "sub-questions in a pool of threads, whose answers a template joins for a last call",
    question="What should a visitor know?",
    answer="Tickets cost 12 euros and dogs are welcome. Parking is free.",
    chunks=["A ticket costs 12 euros.", "Dogs on a lead are welcome."],
    absent=["Tickets are 12 euros, says the desk."],
    invented=["Parking is free."],
)
def pooled(config):
    answers = {
        "price": ("A ticket costs 12 euros.", "Tickets are 12 euros, says the desk."),
        "dogs": ("Dogs on a lead are welcome.", "Dogs are welcome. Parking is free."),
    }

    def part(topic):
        text, said = answers[topic]
        notes = finding(text).invoke(topic)
        return chat(said).invoke(f"{joined(notes)}\nWhat about {topic}?").content

    def ask(question):
        with ContextThreadPoolExecutor(2) as pool:
            parts = [
                each.result() for each in as_completed([pool.submit(part, t) for t in answers])
            ]
        said = "Tickets cost 12 euros and dogs are welcome. Parking is free."
        return chat(said).invoke("Join:\n" + "\n".join(sorted(parts)) + f"\n{question}").content

    RunnableLambda(ask).invoke("What should a visitor know?", config)


@app(
    "a summary that a graph wrote at the end of the turn before",
    question="Who shows the ship?",
    answer="Per shows the ship. It opens at nine.",
    chunks=["On weekdays the museum opens at nine."],
    absent=["a guide named Per shows the ship to every visitor"],
    invented=["Per shows the ship."],
    cases=2,
)
def kept_summary(config):
    class State(MessagesState):
        summary: str

    replies = chat(
        "It opens at nine. A guide named Per shows the ship.",
        "They spoke of hours, and a guide named Per shows the ship to every visitor.",
        "Per shows the ship. It opens at nine.",
        "They spoke of hours and of Per.",
    )

    def answer(state: State):
        notes = joined(finding("On weekdays the museum opens at nine.").invoke("hours"))
        system = f"Earlier: {state.get('summary', '')}\n\nNotes: {notes}"
        return {"messages": [replies.invoke([SystemMessage(system), state["messages"][-1]])]}

    def sum_up(state: State):
        return {"summary": replies.invoke([*state["messages"], HumanMessage("Sum up.")]).content}

    graph = StateGraph(State).add_sequence([answer, sum_up]).add_edge(START, "answer")
    compiled = graph.compile(checkpointer=InMemorySaver())
    thread = {**config, "configurable": {"thread_id": "museum"}}
    for question in ("When does it open?", "Who shows the ship?"):
        compiled.invoke({"messages": [HumanMessage(question)]}, thread)

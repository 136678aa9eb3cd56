"""Agents whose tools give answers with sources, receipts, blocks, notes or nothing of their own."""

import json
import operator
from typing import Annotated

from harness import app
from langchain.agents import create_agent
from langchain.tools import InjectedState
from langchain_core.messages import ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import InjectedToolCallId, StructuredTool, create_retriever_tool, tool
from langchain_fakes import calling, calling_all, chat, documents, finding, joined, store
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command


def ask(text):
    return {"messages": [("user", text)]}


SOLAR = ["The roof carries 24 panels.", "Each panel gives at most 410 watts."]


@app(
    "a tool that returns an answer with its sources",
    question="How much power does the roof give?",
    answer="Nearly ten kilowatts, from 24 panels.",
    chunks=SOLAR,
    absent=["The roof has a peak of 9.84 kilowatts in spring."],
)
def answer_with_sources(config):
    qa = ChatPromptTemplate.from_template("{context}\n\n{question}")

    @tool
    def energy_manual(question: str) -> dict:
        """Answers from the manual."""
        docs = finding(*SOLAR).invoke(question)
        chain = qa | chat("The roof has a peak of 9.84 kilowatts in spring.") | StrOutputParser()
        reply = chain.invoke({"context": joined(docs), "question": question})
        return {"answer": reply, "sources": [doc.page_content for doc in docs]}

    model = chat(
        calling("energy_manual", question="peak power"), "Nearly ten kilowatts, from 24 panels."
    )
    create_agent(model, [energy_manual]).invoke(ask("How much power does the roof give?"), config)


@app(
    "a tool that returns an answer with names of its sources",
    question="Wie viele Module liegen auf dem Dach?",
    answer="Auf dem Dach liegen 24 Module.",
    chunks=["Das Dach trägt 24 Module."],
    absent=["Vierundzwanzig Module, in zwei Reihen."],
    allowed=["dach.pdf"],
)
async def answer_with_names(config):
    @tool
    async def handbuch(frage: str) -> str:
        """Antwortet aus dem Handbuch."""
        docs = await finding("Das Dach trägt 24 Module.").ainvoke(frage)
        reply = await chat("Vierundzwanzig Module, in zwei Reihen.").ainvoke(
            f"{joined(docs)}\n{frage}"
        )
        return json.dumps({"answer": reply.content, "sources": ["dach.pdf"]}, ensure_ascii=False)

    model = chat(calling("handbuch", frage="Module?"), "Auf dem Dach liegen 24 Module.")
    await create_agent(model, [handbuch]).ainvoke(
        ask("Wie viele Module liegen auf dem Dach?"), config
    )


@app(
    "a bank's tool that confirms a transfer",
    question="Send 120 euros to Ines Roth for the concert.",
    answer="I sent 120 EUR to Ines Roth. Your new balance is 1,044.10 EUR.",
    chunks=["Successfully transferred 120.00 EUR to Ines Roth. New balance: 1,044.10 EUR."],
)
def transferred(config):
    @tool
    def transfer(recipient: str, amount: float, purpose: str) -> str:
        """Transfer money."""
        sent = f"Successfully transferred {amount:.2f} EUR to {recipient}."
        return f"{sent} New balance: 1,044.10 EUR."

    model = chat(
        calling("transfer", recipient="Ines Roth", amount=120, purpose="concert"),
        "I sent 120 EUR to Ines Roth. Your new balance is 1,044.10 EUR.",
    )
    create_agent(model, [transfer]).invoke(
        ask("Send 120 euros to Ines Roth for the concert."), config
    )


@app(
    "a booking that the tool repeats with a number",
    question="Book a room for Thursday at nine.",
    answer="Room Curie is booked for Thursday at nine, number B-4471. Coffee is ordered.",
    chunks=["Booked room Curie for Thursday 09:00 (booking B-4471)"],
    invented=["Coffee is ordered."],
)
def booked(config):
    @tool
    def book_room(room: str, day: str, time: str) -> str:
        """Book a room."""
        return f"Booked room {room} for {day} {time} (booking B-4471)"

    model = chat(
        calling("book_room", room="Curie", day="Thursday", time="09:00"),
        "Room Curie is booked for Thursday at nine, number B-4471. Coffee is ordered.",
    )
    list(create_agent(model, [book_room]).stream(ask("Book a room for Thursday at nine."), config))


@app(
    "a tool that returns several text blocks",
    question="What are the opening hours?",
    answer="Open from ten to six, on Thursdays until eight.",
    chunks=["Open from ten to six.", "On Thursdays open until eight.", "Closed on Mondays."],
)
def blocks(config):
    @tool
    def hours(place: str) -> list:
        """Opening hours."""
        return [
            {"type": "text", "text": "Open from ten to six."},
            {"type": "text", "text": "On Thursdays open until eight."},
            {"type": "text", "text": "Closed on Mondays."},
        ]

    model = chat(
        calling("hours", place="gallery"), "Open from ten to six, on Thursdays until eight."
    )
    create_agent(model, [hours]).invoke(ask("What are the opening hours?"), config)


@app(
    "a tool that returns documents with scores",
    question="Which fungus grows on birch?",
    answer="The birch polypore grows on birch trees only.",
    chunks=["The birch polypore grows on birches only.", "The tinder fungus also grows on beech."],
)
def scored(config):
    texts = store(
        "The birch polypore grows on birches only.", "The tinder fungus also grows on beech."
    )

    @tool
    def fungi(query: str) -> list:
        """Looks up fungi."""
        return texts.similarity_search_with_score(query, k=2)

    model = chat(
        calling("fungi", query="birch fungus"), "The birch polypore grows on birch trees only."
    )
    create_agent(model, [fungi]).invoke(ask("Which fungus grows on birch?"), config)


@app(
    "documents as an artifact, numbers of them as the message",
    question="Which tram goes to the stadium?",
    answer="Tram 3 goes to the stadium.",
    chunks=["Tram 3 goes to the stadium.", "Tram 8 ends at the harbour."],
)
def artifact(config):
    @tool(response_format="content_and_artifact")
    def trams(query: str):
        """Looks up trams."""
        docs = documents("Tram 3 goes to the stadium.", "Tram 8 ends at the harbour.")
        text = "\n".join(f"[{n}] {doc.page_content}" for n, doc in enumerate(docs, 1))
        return text, docs

    model = chat(calling("trams", query="stadium"), "Tram 3 goes to the stadium.")
    create_agent(model, [trams]).invoke(ask("Which tram goes to the stadium?"), config)


@app(
    "JSON with escapes from a server of tools",
    question="Quel est le plat du jour ?",
    answer="Le plat du jour est la crème brûlée salée aux cèpes.",
    chunks=["crème brûlée salée aux cèpes"],
)
async def escapes(config):
    async def menu(date: str):
        text = json.dumps({"plat": "crème brûlée salée aux cèpes", "prix": 18})
        return [{"type": "text", "text": text}], None

    server = StructuredTool.from_function(
        coroutine=menu,
        name="menu",
        description="Donne la carte.",
        response_format="content_and_artifact",
    )
    model = chat(
        calling("menu", date="aujourd'hui"), "Le plat du jour est la crème brûlée salée aux cèpes."
    )
    await create_agent(model, [server]).ainvoke(ask("Quel est le plat du jour ?"), config)


class Pad(MessagesState):
    notes: Annotated[list[str], operator.add]


@app(
    "notes that the agent wrote and reads back",
    question="What do we know about the leak?",
    answer="The leak is behind the boiler.",
    chunks=["Inspection: moisture was found behind the boiler."],
    absent=["The leak seems to come from the boiler side."],
    allowed=["Noted."],
)
def notes(config):
    pad = []

    @tool
    def write_note(text: str) -> str:
        """Write a note."""
        pad.append(text)
        return "Noted."

    @tool
    def read_notes() -> str:
        """Read all notes."""
        return "\n".join(f"- {each}" for each in pad)

    search = create_retriever_tool(
        finding("Inspection: moisture was found behind the boiler."), "search", "Searches."
    )
    model = chat(
        calling("search", query="leak"),
        calling("write_note", text="The leak seems to come from the boiler side."),
        calling("read_notes"),
        "The leak is behind the boiler.",
    )
    create_agent(model, [search, write_note, read_notes]).invoke(
        ask("What do we know about the leak?"), config
    )


@app(
    "a thought that a tool repeats",
    question="Is the bridge safe for lorries?",
    answer="No, it carries 7.5 tonnes at most.",
    chunks=["The bridge carries 7.5 tonnes at most."],
    absent=["Lorries weigh up to forty tonnes, so it is probably not safe."],
    allowed=["Thought recorded"],
)
def thought(config):
    @tool
    def think(thought: str) -> str:
        """Think about something."""
        return f"Thought recorded: {thought}"

    search = create_retriever_tool(
        finding("The bridge carries 7.5 tonnes at most."), "search", "Searches."
    )
    model = chat(
        calling("search", query="bridge load"),
        calling("think", thought="Lorries weigh up to forty tonnes, so it is probably not safe."),
        "No, it carries 7.5 tonnes at most.",
    )
    create_agent(model, [search, think]).invoke(ask("Is the bridge safe for lorries?"), config)


@app(
    "a file that the agent wrote and read again",
    question="Write a report about the wells.",
    answer="Two of the three wells have drinking water.",
    chunks=["Well A: drinkable. Well B: drinkable. Well C: too much nitrate."],
    absent=["Draft: most of the wells are fine and only one is bad."],
    allowed=["Updated file /report.md"],
)
def files(config):
    folder = {}

    @tool
    def write_file(path: str, content: str) -> str:
        """Write a file."""
        folder[path] = content
        return f"Updated file {path}"

    @tool
    def read_file(path: str) -> str:
        """Read a file."""
        return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(folder[path].splitlines(), 1))

    @tool
    def laboratory(samples: str) -> str:
        """Results of the laboratory."""
        return "Well A: drinkable. Well B: drinkable. Well C: too much nitrate."

    model = chat(
        calling("laboratory", samples="wells"),
        calling(
            "write_file",
            path="/report.md",
            content="Draft: most of the wells are fine and only one is bad.",
        ),
        calling("read_file", path="/report.md"),
        "Two of the three wells have drinking water.",
    )
    create_agent(model, [laboratory, write_file, read_file]).invoke(
        ask("Write a report about the wells."), config
    )


@app(
    "a calculator",
    question="What is 17 per cent of 2,350?",
    answer="17 per cent of 2,350 is 399.5.",
    chunks=["399.5"],
)
def calculator(config):
    @tool
    def calculate(expression: str) -> str:
        """Calculate."""
        return "399.5"

    model = chat(calling("calculate", expression="2350 * 0.17"), "17 per cent of 2,350 is 399.5.")
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([calculate]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    builder.compile().invoke(ask("What is 17 per cent of 2,350?"), config)


@app(
    "a tool that puts its documents into the state",
    question="Who painted the ceiling?",
    answer="The ceiling was painted by Cosmas Asam. He fell off the scaffold.",
    chunks=["Cosmas Asam painted the ceiling in 1721."],
    invented=["He fell off the scaffold."],
)
def command(config):
    @tool
    def archive(query: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Looks into the archive."""
        text = "Cosmas Asam painted the ceiling in 1721."
        return Command(update={"messages": [ToolMessage(text, tool_call_id=tool_call_id)]})

    model = chat(
        calling("archive", query="ceiling"),
        "The ceiling was painted by Cosmas Asam. He fell off the scaffold.",
    )
    create_agent(model, [archive]).invoke(ask("Who painted the ceiling?"), config)


@app(
    "three tools at once, one of which fails",
    question="Shall I water the garden today?",
    answer="No: rain is coming and the soil is wet.",
    chunks=["Rain from two o'clock", "soil moisture 61 %"],
    allowed=["Error: the camera does not answer"],
)
def three_at_once(config):
    @tool
    def weather(city: str) -> str:
        """Weather."""
        return "Rain from two o'clock"

    @tool
    def soil(bed: int) -> str:
        """Soil."""
        return "soil moisture 61 %"

    @tool
    def camera(bed: int) -> str:
        """Picture."""
        raise ConnectionError("the camera does not answer")

    model = chat(
        calling_all(("weather", {"city": "Bonn"}), ("soil", {"bed": 2}), ("camera", {"bed": 2})),
        "No: rain is coming and the soil is wet.",
    )
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node(
        "tools",
        ToolNode([weather, soil, camera], handle_tool_errors=lambda error: f"Error: {error}"),
    )
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    builder.compile().invoke(ask("Shall I water the garden today?"), config)


@app(
    "a tool that reads the state",
    question="Am I old enough for the licence?",
    answer="Yes, you are 18 and the licence is given from 17 on.",
    chunks=["licence from the age of 17; applicant: 18"],
)
def injected(config):
    class Person(MessagesState):
        age: int

    @tool
    def check(licence: str, state: Annotated[dict, InjectedState]) -> str:
        """Check the age."""
        return f"licence from the age of 17; applicant: {state['age']}"

    model = chat(
        calling("check", licence="B"), "Yes, you are 18 and the licence is given from 17 on."
    )
    builder = StateGraph(Person)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([check]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    builder.compile().invoke({**ask("Am I old enough for the licence?"), "age": 18}, config)

"""Applications whose answer is an object, a report, a draft that was revised, or a tool call."""

import asyncio
import json
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.runnables import chain as chain_of
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import calling, chat, finding, joined
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

VISA = "A visa for studies is valid for one year and can be extended twice."
FEES = "The fee for a visa for studies is 75 EUR."


class Essay(TypedDict, total=False):
    topic: str
    sources: str
    draft: str
    critique: str


@app(
    "a draft that a critic sends back",
    question="How long is a visa for studies valid?",
    answer="A visa for studies is valid for one year; it can be extended twice.",
    chunks=[VISA, FEES],
    absent=["The visa lasts three years.", "Wrong duration: read the source again."],
    status="no_answer",
)
def revised(config):
    writer = chat(
        "The visa lasts three years.",
        "A visa for studies is valid for one year; it can be extended twice.",
    )
    critic = chat("Wrong duration: read the source again.", "OK")

    def research(state: Essay):
        return {"sources": joined(finding(VISA, FEES).invoke(state["topic"]))}

    def write(state: Essay):
        messages = [SystemMessage(f"Sources:\n{state['sources']}"), HumanMessage(state["topic"])]
        if state.get("critique"):
            messages.append(
                HumanMessage(f"Your draft: {state['draft']}\nCritique: {state['critique']}")
            )
        return {"draft": writer.invoke(messages).content}

    def criticise(state: Essay):
        asked = f"Check the draft against the sources.\n{state['sources']}\n{state['draft']}"
        return {"critique": critic.invoke(asked).content}

    graph = StateGraph(Essay)
    graph.add_node("research", research)
    graph.add_node("write", write)
    graph.add_node("criticise", criticise)
    graph.add_edge(START, "research")
    graph.add_edge("research", "write")
    graph.add_edge("write", "criticise")
    graph.add_conditional_edges(
        "criticise", lambda state: END if state["critique"] == "OK" else "write"
    )
    graph.compile().invoke({"topic": "How long is a visa for studies valid?"}, config)


class Assessment(BaseModel):
    verdict: str
    reason: str
    fee_eur: int


@app(
    "an object with a wrong number",
    question="What does a visa for studies cost?",
    answer=["It has a fixed fee.", "The schedule lists it for students.", "95"],
    chunks=[FEES],
)
def assessed(config):
    prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
    called = calling(
        "Assessment",
        verdict="It has a fixed fee.",
        reason="The schedule lists it for students.",
        fee_eur=95,
    )
    chain = (
        {"context": finding(FEES) | joined, "question": RunnablePassthrough()}
        | prompt
        | chat(called).with_structured_output(Assessment)
    )
    chain.invoke("What does a visa for studies cost?", config)


@app(
    "an answer submitted through a tool that ends the run",
    question="Can my visa for studies be extended?",
    answer="Yes, it can be extended twice.",
    chunks=[VISA],
)
def submitted(config):
    @tool(return_direct=True)
    def submit_answer(answer: str) -> str:
        """Hand in the final answer."""
        return "submitted"

    search = create_retriever_tool(finding(VISA), "search_rules", "Search the visa rules.")
    model = chat(
        calling("search_rules", query="extension of a visa for studies"),
        calling("submit_answer", answer="Yes, it can be extended twice."),
    )
    agent = create_agent(model, [search, submit_answer])
    asked = {"messages": [{"role": "user", "content": "Can my visa for studies be extended?"}]}
    agent.invoke(asked, config)


@app(
    "a result wrapped by a service",
    question="What is the fee for students?",
    answer="Students pay 75 EUR. The fee can be paid in instalments.",
    chunks=[FEES],
    invented=["The fee can be paid in instalments."],
)
def wrapped(config):
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    chain = (
        {"context": finding(FEES) | joined, "question": RunnablePassthrough()}
        | prompt
        | chat("Students pay 75 EUR. The fee can be paid in instalments.")
        | StrOutputParser()
        | (lambda text: {"result": "success", "data": {"answer": text, "model": "scripted-1"}})
    )
    chain.invoke("What is the fee for students?", config)


class Fact(BaseModel):
    statement: str
    source: str


class Facts(BaseModel):
    facts: list[Fact]


@app(
    "facts with sources",
    question="What do we know about the lighthouse?",
    answer=["It was built in 1889.", "Its lamp reaches 31 miles."],
    chunks=["The lighthouse dates from 1889.", "On clear nights its lamp reaches 21 miles."],
)
def facts(config):
    found = finding("The lighthouse dates from 1889.", "On clear nights its lamp reaches 21 miles.")
    called = calling(
        "Facts",
        facts=[
            {"statement": "It was built in 1889.", "source": "chronicle"},
            {"statement": "Its lamp reaches 31 miles.", "source": "chart"},
        ],
    )
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    chain = (
        {"context": found | joined, "question": RunnablePassthrough()}
        | prompt
        | chat(called).with_structured_output(Facts)
    )
    chain.invoke("What do we know about the lighthouse?", config)


@app(
    "a report with key points",
    question="Berichte über die Wärmepumpe.",
    answer=[
        "Die Wärmepumpe läuft seit März ohne Störung.",
        "Verbrauch: 2.100 kWh",
        "Der Filter wurde im Juni getauscht.",
    ],
    chunks=["Die Pumpe läuft seit März störungsfrei.", "Der Verbrauch liegt bei 2.100 kWh."],
    invented=["Der Filter wurde im Juni getauscht."],
)
def report(config):
    class State(TypedDict, total=False):
        question: str
        summary: str
        key_points: list[str]

    def write(state: State):
        docs = finding(
            "Die Pumpe läuft seit März störungsfrei.", "Der Verbrauch liegt bei 2.100 kWh."
        ).invoke(state["question"])
        made = chat(
            "Die Wärmepumpe läuft seit März ohne Störung.\n"
            "- Verbrauch: 2.100 kWh\n- Der Filter wurde im Juni getauscht."
        ).invoke(f"{joined(docs)}\n\n{state['question']}")
        summary, *points = made.text.splitlines()
        return {"summary": summary, "key_points": [point[2:] for point in points]}

    class Report(TypedDict):
        summary: str
        key_points: list[str]

    graph = StateGraph(State, output_schema=Report)
    graph.add_node("write", write)
    graph.add_edge(START, "write")
    graph.compile().invoke({"question": "Berichte über die Wärmepumpe."}, config)


@app(
    "a list of texts",
    question="List the rules for the sauna.",
    answer=["Shower before you enter.", "Sit on a towel.", "Phones are confiscated."],
    chunks=["Guests shower before they enter and sit on a towel."],
)
def listed(config):
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question} One per line.")
    chain = (
        {
            "context": finding("Guests shower before they enter and sit on a towel.") | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("Shower before you enter.\nSit on a towel.\nPhones are confiscated.")
        | StrOutputParser()
        | str.splitlines
    )
    chain.invoke("List the rules for the sauna.", config)


@app(
    "a parsed dictionary of three fields",
    question="How was the hike?",
    answer=["The path was muddy.", "four hours", "a fox"],
    chunks=["Diary: the path was muddy, we needed four hours and saw a deer."],
)
async def parsed(config):
    prompt = ChatPromptTemplate.from_template("{diary}\n{question}\nReply in JSON.")
    reply = json.dumps({"summary": "The path was muddy.", "took": "four hours", "seen": "a fox"})
    chain = (
        {
            "diary": finding("Diary: the path was muddy, we needed four hours and saw a deer.")
            | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat(reply)
        | JsonOutputParser()
    )
    await chain.ainvoke("How was the hike?", config)


@app(
    "branches that end in any order",
    question="What can I do at the lake?",
    answer="You can swim and hire a boat.",
    chunks=["The lake has a bathing beach.", "Boats are hired out at the pier."],
    absent=["yes, grounded", "lake, swim, boat"],
)
async def branches(config):
    class State(TypedDict, total=False):
        question: str
        context: list[Document]
        answer: str
        grounded: str
        keywords: str

    async def retrieve(state: State):
        docs = finding("The lake has a bathing beach.", "Boats are hired out at the pier.")
        return {"context": await docs.ainvoke(state["question"])}

    async def generate(state: State):
        model = chat("You can swim and hire a boat.")
        asked = f"{joined(state['context'])}\n\n{state['question']}"
        return {"answer": (await model.ainvoke(asked)).text}

    async def check(state: State):
        await asyncio.sleep(0.01)
        asked = f"Grounded?\n{joined(state['context'])}\n{state['answer']}"
        return {"grounded": (await chat("yes, grounded").ainvoke(asked)).text}

    async def tag(state: State):
        await asyncio.sleep(0.02)
        return {"keywords": (await chat("lake, swim, boat").ainvoke(state["answer"])).text}

    graph = StateGraph(State)
    for node in (retrieve, generate, check, tag):
        graph.add_node(node)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", "check")
    graph.add_edge("generate", "tag")
    await graph.compile().ainvoke({"question": "What can I do at the lake?"}, config)


@app(
    "an answer written by a template from a structured reply",
    question="Is the trail open?",
    answer="Status of the trail: open. Reason: the snow has melted. (as of today)",
    chunks=["Snow report: all trails are free of snow since Sunday."],
)
def template(config):
    class Status(BaseModel):
        status: str
        reason: str

    called = calling("Status", status="open", reason="the snow has melted")
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    chain = (
        {
            "context": finding("Snow report: all trails are free of snow since Sunday.") | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat(called).with_structured_output(Status)
        | (lambda s: f"Status of the trail: {s.status}. Reason: {s.reason}. (as of today)")
    )
    chain.invoke("Is the trail open?", config)


@app(
    "a structured response of an agent",
    question="¿Qué habitación está libre?",
    answer=["Habitación 12", "84", "con vistas al mar"],
    chunks=["Libre: habitación 12, 84 EUR, patio interior"],
)
def structured_response(config):
    class Room(BaseModel):
        name: str
        price: int
        remark: str

    @tool
    def disponibilidad(fecha: str) -> str:
        """Habitaciones libres."""
        return "Libre: habitación 12, 84 EUR, patio interior"

    model = chat(
        calling("disponibilidad", fecha="hoy"),
        calling("Room", name="Habitación 12", price=84, remark="con vistas al mar"),
    )
    agent = create_agent(model, [disponibilidad], response_format=ToolStrategy(Room))
    agent.invoke({"messages": [HumanMessage("¿Qué habitación está libre?")]}, config)


@app(
    "a final answer tool in a loop by hand",
    question="Which key opens the shed?",
    answer="The small brass key opens the shed.",
    chunks=["Shed: small brass key on the hook by the door"],
)
def final_answer(config):
    @tool
    def look(place: str) -> str:
        """Look somewhere."""
        return "Shed: small brass key on the hook by the door"

    def final_answer(text: str) -> str:
        """Give the final answer."""

    model = chat(
        calling("look", place="shed"),
        calling("final_answer", text="The small brass key opens the shed."),
    ).bind_tools([look, final_answer])

    def call(state: MessagesState):
        return {"messages": [model.invoke(state["messages"])]}

    def ends(state):
        return END if state["messages"][-1].tool_calls[0]["name"] == "final_answer" else "tools"

    graph = StateGraph(MessagesState)
    graph.add_node("call", call)
    graph.add_node("tools", ToolNode([look]))
    graph.add_edge(START, "call")
    graph.add_conditional_edges("call", ends)
    graph.add_edge("tools", "call")
    graph.compile().invoke({"messages": [("user", "Which key opens the shed?")]}, config)


@app(
    "an answer that a model translates",
    question="Wie lange dauert die Fahrt?",
    answer="Die Fahrt dauert drei Stunden.",
    chunks=["The ride from Kiel to Lübeck takes three hours with the slow train."],
    absent=["You will be travelling for about three hours."],
)
def translated(config):
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    english = (
        {
            "context": finding(
                "The ride from Kiel to Lübeck takes three hours with the slow train."
            )
            | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("You will be travelling for about three hours.")
        | StrOutputParser()
    )
    translate = ChatPromptTemplate.from_template("Translate into German:\n{text}")
    chain = (
        {"text": english} | translate | chat("Die Fahrt dauert drei Stunden.") | StrOutputParser()
    )
    chain.invoke("Wie lange dauert die Fahrt?", config)


@app(
    "an answer with a footer that code adds",
    question="Can I bring my own wine?",
    answer="Yes, the corkage is 12 EUR.\n\nSources: menu.pdf",
    chunks=["Corkage for wine of your own: 12 EUR a bottle"],
)
def footer(config):
    @chain_of
    def ask(question):
        docs = finding("Corkage for wine of your own: 12 EUR a bottle").invoke(question)
        reply = chat("Yes, the corkage is 12 EUR.").invoke(f"{joined(docs)}\n{question}").text
        return f"{reply}\n\nSources: menu.pdf"

    ask.invoke("Can I bring my own wine?", config)


@app(
    "the best of three candidates",
    question="How old is the oak?",
    answer="The oak is about 400 years old.",
    chunks=["A core sample of the oak has 397 rings."],
    absent=["The oak is very old.", "It must be from the Middle Ages."],
)
def best_of_three(config):
    @chain_of
    def ask(question):
        docs = finding("A core sample of the oak has 397 rings.").invoke(question)
        prompt = f"{joined(docs)}\n\n{question}"
        writer = chat(
            "The oak is very old.",
            "The oak is about 400 years old.",
            "It must be from the Middle Ages.",
        )
        drafts = [writer.invoke(prompt).text for _ in range(3)]
        listed = "\n".join(f"{n}: {draft}" for n, draft in enumerate(drafts))
        best = chat("1").invoke(f"Which is best? Reply with its number.\n{listed}")
        return {"answer": drafts[int(best.text)]}

    ask.invoke("How old is the oak?", config)


@app(
    "an answer in an object beside its confidence",
    question="Does the train stop in Olten?",
    answer=["Yes, it stops in Olten for two minutes."],
    chunks=["Stops: Bern, Olten (2 min), Zürich"],
)
def beside_confidence(config):
    class Reply(BaseModel):
        confidence: float
        answer: str

    called = calling("Reply", confidence=0.93, answer="Yes, it stops in Olten for two minutes.")
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    chain = (
        {
            "context": finding("Stops: Bern, Olten (2 min), Zürich") | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat(called).with_structured_output(Reply)
    )
    chain.invoke("Does the train stop in Olten?", config)

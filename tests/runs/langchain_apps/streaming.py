"""Applications that stream: tokens, events, updates, custom pieces, generators in a chain."""

import asyncio
from operator import itemgetter
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableGenerator, RunnablePassthrough, chain
from langchain_core.tools import create_retriever_tool
from langchain_fakes import calling, chat, finding, joined
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph

PROMPT = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
SNOW = "The pass is closed between November and May."


def rag(reply, *texts):
    return (
        {"context": finding(*texts) | joined, "question": RunnablePassthrough()}
        | PROMPT
        | chat(reply)
        | StrOutputParser()
    )


@app(
    "tokens of a chain",
    question="When is the pass closed?",
    answer="The pass is closed from November to May.",
    chunks=[SNOW],
)
def tokens(config):
    application = rag("The pass is closed from November to May.", SNOW)
    list(application.stream("When is the pass closed?", config))


@app(
    "events of a chain",
    question="Wann ist der Pass gesperrt?",
    answer="Der Pass ist von November bis Mai gesperrt. Danach gilt Maut.",
    chunks=["Der Pass ist zwischen November und Mai gesperrt."],
    invented=["Danach gilt Maut."],
)
async def events(config):
    application = rag(
        "Der Pass ist von November bis Mai gesperrt. Danach gilt Maut.",
        "Der Pass ist zwischen November und Mai gesperrt.",
    )
    async for _ in application.astream_events("Wann ist der Pass gesperrt?", config, version="v2"):
        pass


@app(
    "events of an agent",
    question="Is the tunnel open?",
    answer="The tunnel is open all year.",
    chunks=["The tunnel is open all year round."],
)
async def agent_events(config):
    search = create_retriever_tool(
        finding("The tunnel is open all year round."), "roads", "Looks up roads."
    )
    agent = create_agent(
        chat(calling("roads", query="tunnel"), "The tunnel is open all year."), [search]
    )
    asked = {"messages": [HumanMessage("Is the tunnel open?")]}
    async for _ in agent.astream_events(asked, config, version="v2"):
        pass


@app(
    "several modes of a graph",
    question="Do I need chains?",
    answer="Yes, chains are required above 1,500 metres.",
    chunks=["Snow chains are required above 1,500 metres."],
)
def several_modes(config):
    class State(TypedDict, total=False):
        question: str
        context: str
        answer: str

    def search(state: State):
        get_stream_writer()({"progress": "searching"})
        docs = finding("Snow chains are required above 1,500 metres.").invoke(state["question"])
        return {"context": joined(docs)}

    def answer(state: State):
        asked = f"{state['context']}\n\n{state['question']}"
        reply = ""
        for piece in chat("Yes, chains are required above 1,500 metres.").stream(asked):
            get_stream_writer()({"token": piece.content})
            reply += piece.content
        return {"answer": reply}

    graph = StateGraph(State)
    graph.add_sequence([search, answer])
    graph.add_edge(START, "search")
    for _ in graph.compile().stream(
        {"question": "Do I need chains?"}, config, stream_mode=["updates", "custom", "messages"]
    ):
        pass


@app(
    "a generator at the end of a chain",
    question="Which hut is open in winter?",
    answer="The Rotwand hut is open in winter.",
    chunks=["In winter only the Rotwand hut is open."],
)
def generator(config):
    def without_stars(pieces):
        for piece in pieces:
            yield piece.replace("*", "")

    application = rag(
        "The *Rotwand* hut is open in winter.", "In winter only the Rotwand hut is open."
    ) | RunnableGenerator(without_stars)
    list(application.stream("Which hut is open in winter?", config))


@app(
    "a token generator in a decorated function",
    question="How long is the climb?",
    answer="The climb takes four hours. Bring a rope.",
    chunks=["The climb to the summit takes four hours."],
    invented=["Bring a rope."],
)
async def decorated(config):
    @chain
    async def ask(question):
        docs = await finding("The climb to the summit takes four hours.").ainvoke(question)
        model = chat("The climb takes four hours. Bring a rope.")
        async for piece in model.astream(f"{joined(docs)}\n\n{question}"):
            yield piece.content

    async for _ in ask.astream("How long is the climb?", config):
        pass


@app(
    "a dictionary that is streamed",
    question="Where can I park?",
    answer="Park at the mill.",
    chunks=["Walkers park at the mill."],
)
def streamed_dictionary(config):
    application = RunnablePassthrough.assign(
        docs=itemgetter("question") | finding("Walkers park at the mill.")
    ).assign(
        answer=RunnablePassthrough.assign(context=lambda given: joined(given["docs"]))
        | PROMPT
        | chat("Park at the mill.")
        | StrOutputParser()
    )
    for piece in application.stream({"question": "Where can I park?"}, config):
        assert piece


@app(
    "JSON that is streamed",
    question="¿Cuánto dura el paseo?",
    answer=["dos horas", "fácil"],
    chunks=["El paseo por el río dura dos horas y es fácil."],
)
async def streamed_json(config):
    prompt = ChatPromptTemplate.from_template("{context}\n{question}\nResponde en JSON.")
    application = (
        {
            "context": finding("El paseo por el río dura dos horas y es fácil.") | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat('{"duración": "dos horas", "nivel": "fácil"}')
        | JsonOutputParser()
    )
    async for _ in application.astream("¿Cuánto dura el paseo?", config):
        pass


@app(
    "a functional workflow that streams",
    question="Which bus goes to the trailhead?",
    answer="Bus 9557 goes to the trailhead.",
    chunks=["Bus 9557 runs from the station to the trailhead."],
)
def functional(config):
    @task
    def search(question):
        return finding("Bus 9557 runs from the station to the trailhead.").invoke(question)

    @task
    def answer(question, docs):
        asked = f"{joined(docs)}\n\n{question}"
        return chat("Bus 9557 goes to the trailhead.").invoke(asked).text

    @entrypoint()
    def workflow(question):
        return answer(question, search(question).result()).result()

    list(workflow.stream("Which bus goes to the trailhead?", config))


@app(
    "an async chain that two readers share",
    question="Is swimming allowed in the reservoir?",
    answer="No, swimming is forbidden there.",
    chunks=["Swimming is forbidden in the reservoir."],
    absent=["Fishing needs a permit."],
    cases=2,
)
async def two_readers(config):
    async def read(question, reply, text):
        return [piece async for piece in rag(reply, text).astream(question, config)]

    await asyncio.gather(
        read(
            "Is swimming allowed in the reservoir?",
            "No, swimming is forbidden there.",
            "Swimming is forbidden in the reservoir.",
        ),
        read("Is fishing allowed?", "Yes, with a permit.", "Fishing needs a permit."),
    )

"""Translations, transcripts, copies, entities, cut answers, fallbacks of searches."""

import json
import re
from dataclasses import dataclass
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from langchain_core.tools import tool
from langchain_fakes import Found, calling, chat, finding, joined
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph

PROMPT = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])


def ask(text):
    return {"messages": [HumanMessage(text)]}


@app(
    "entities of a graph as dictionaries",
    question="Who owns the mill?",
    answer="Ada Quist owns the mill.",
    prompt=["Ada Quist", "bought the mill in 1998"],
)
def entities(config):
    class State(TypedDict, total=False):
        question: str
        entities: list[dict[str, str]]
        answer: str

    def look_up(state: State):
        found = [
            {"entity": "Ada Quist", "description": "bought the mill in 1998"},
            {"entity": "mill", "description": "grinds rye"},
        ]
        return {"entities": found}

    def answer(state: State):
        lines = "\n".join(f"{e['entity']} -- {e['description']}" for e in state["entities"])
        made = chat("Ada Quist owns the mill.").invoke(
            [SystemMessage(lines), HumanMessage(state["question"])]
        )
        return {"answer": made.text}

    graph = StateGraph(State)
    graph.add_sequence([look_up, answer])
    graph.add_edge(START, "look_up")
    graph.compile().invoke({"question": "Who owns the mill?"}, config)


TRANSCRIPT = "Customer: The heater is cold.\nAssistant: We will send a fitter on Tuesday."


@app(
    "transcripts of calls as documents",
    question="What was promised to the customer with the cold heater?",
    answer="A fitter was promised for Tuesday.",
    chunks=[TRANSCRIPT],
)
def transcripts(config):
    application = (
        {"context": finding(TRANSCRIPT) | joined, "question": RunnablePassthrough()}
        | PROMPT
        | chat("A fitter was promised for Tuesday.")
        | StrOutputParser()
    )
    application.invoke("What was promised to the customer with the cold heater?", config)


@app(
    "a guess that stands word for word in a document",
    question="How long may a dog be left alone?",
    answer="A grown dog may be left alone for four hours at most.",
    chunks=["A grown dog may be left alone for four hours at most."],
)
def guessed_word_for_word(config):
    @chain
    def answer(question):
        guess = chat("A grown dog may be left alone for four hours at most.").invoke(
            f"Write a passage that answers: {question}"
        )
        docs = finding("A grown dog may be left alone for four hours at most.").invoke(guess.text)
        asked = [SystemMessage(joined(docs)), HumanMessage(question)]
        return chat("A grown dog may be left alone for four hours at most.").invoke(asked).text

    answer.invoke("How long may a dog be left alone?", config)


@app(
    "chat logs as documents of JSON",
    question="Which coupon did we give to Mr Ito?",
    answer="Mr Ito got the coupon SPRING5.",
    chunks=["the coupon SPRING5 is yours"],
)
def chat_logs(config):
    log = json.dumps(
        [
            {"role": "user", "content": "Ito here, my parcel came late."},
            {"role": "assistant", "content": "Sorry, the coupon SPRING5 is yours."},
        ]
    )
    application = (
        {"context": finding(log) | joined, "question": RunnablePassthrough()}
        | PROMPT
        | chat("Mr Ito got the coupon SPRING5.")
        | StrOutputParser()
    )
    application.invoke("Which coupon did we give to Mr Ito?", config)


@app(
    "thoughts in tags that the application takes off",
    question="Hvor mye koster en enkeltbillett?",
    answer="En enkeltbillett koster 42 kroner. Den gjelder i to timer.",
    chunks=["Enkeltbillett voksen: 42 kroner"],
    absent=["Brukeren vil vite prisen."],
    invented=["Den gjelder i to timer."],
)
def thoughts(config):
    reply = (
        "<think>Brukeren vil vite prisen.</think>\n"
        "En enkeltbillett koster 42 kroner. Den gjelder i to timer."
    )
    application = (
        {
            "context": finding("Enkeltbillett voksen: 42 kroner") | joined,
            "question": RunnablePassthrough(),
        }
        | PROMPT
        | chat(reply)
        | StrOutputParser()
        | (lambda text: re.sub(r"<think>.*?</think>\s*", "", text))
    )
    application.invoke("Hvor mye koster en enkeltbillett?", config)


@app(
    "a reply that code splits into lines",
    question="List the steps to reset the router.",
    answer=["Hold the button for ten seconds.", "Wait for the green light.", "Pay nothing."],
    chunks=["Reset: hold the button for ten seconds, then wait for the green light."],
    invented=["Pay nothing."],
)
def lines(config):
    reply = "1. Hold the button for ten seconds.\n2. Wait for the green light.\n3. Pay nothing."
    application = (
        {
            "context": finding(
                "Reset: hold the button for ten seconds, then wait for the green light."
            )
            | joined,
            "question": RunnablePassthrough(),
        }
        | PROMPT
        | chat(reply)
        | StrOutputParser()
        | (lambda text: [line.partition(". ")[2] for line in text.splitlines()])
    )
    application.invoke("List the steps to reset the router.", config)


@app(
    "an agent whose caller has searched before it",
    question="Can I bring my own wine, and what time is it there?",
    answer="Yes, for 15 EUR a bottle; it is half past six there.",
    chunks=["Own wine: 15 EUR a bottle", "18:30"],
)
def searched_before(config):
    @tool
    def clock(place: str) -> str:
        """The time at a place."""
        return "18:30"

    agent = create_agent(
        chat(calling("clock", place="inn"), "Yes, for 15 EUR a bottle; it is half past six there."),
        [clock],
    )

    @chain
    def answer(question):
        docs = finding("Own wine: 15 EUR a bottle").invoke(question)
        messages = [SystemMessage(f"Rules:\n{joined(docs)}"), HumanMessage(question)]
        return agent.invoke({"messages": messages})["messages"][-1].text

    answer.invoke("Can I bring my own wine, and what time is it there?", config)


@app(
    "sub-questions that are answered in a batch",
    question="Which of the two lakes is deeper and which is warmer?",
    answer="The Blue Lake is deeper, the Mill Pond is warmer.",
    chunks=["Blue Lake: 41 m deep, 17 degrees", "Mill Pond: 3 m deep, 24 degrees"],
    absent=["The first lake reaches forty-one metres.", "The pond is shallow yet warm."],
)
def batched(config):
    texts = {
        "Blue Lake?": "Blue Lake: 41 m deep, 17 degrees",
        "Mill Pond?": "Mill Pond: 3 m deep, 24 degrees",
    }
    replies = {
        "Blue Lake?": "The first lake reaches forty-one metres.",
        "Mill Pond?": "The pond is shallow yet warm.",
    }

    @chain
    def answer_one(question):
        docs = finding(texts[question]).invoke(question)
        return chat(replies[question]).invoke(f"{joined(docs)}\n{question}").text

    @chain
    def answer(question):
        wanted = chat("Blue Lake?\nMill Pond?").invoke(f"Split: {question}").text.splitlines()
        parts = answer_one.batch(wanted)
        notes = "\n".join(f"Q: {q}\nA: {a}" for q, a in zip(wanted, parts, strict=True))
        final = chat("The Blue Lake is deeper, the Mill Pond is warmer.")
        return final.invoke(f"{notes}\n\n{question}").text

    answer.invoke("Which of the two lakes is deeper and which is warmer?", config)


@app(
    "a tool that returns objects of the application",
    question="Ist Platz 14 frei?",
    answer="Platz 14 ist frei und liegt am Ufer.",
    prompt=["14", "Ufer"],
)
async def objects(config):
    @dataclass
    class Pitch:
        number: int
        place: str
        is_free: bool

    @tool
    async def pitches(night: str) -> list[Pitch]:
        """Die Plätze einer Nacht."""
        return [Pitch(14, "am Ufer", is_free=True), Pitch(15, "am Wald", is_free=False)]

    model = chat(calling("pitches", night="heute"), "Platz 14 ist frei und liegt am Ufer.")
    await create_agent(model, [pitches]).ainvoke(ask("Ist Platz 14 frei?"), config)


@app(
    "a search that fails and one that takes its place",
    question="Where do I get the key?",
    answer="You get the key at the bakery. Bring your passport.",
    chunks=["Keys are handed out at the bakery."],
    invented=["Bring your passport."],
)
def search_fallback(config):
    class Broken(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            raise ConnectionError("the store is away")

    search = Broken().with_fallbacks([finding("Keys are handed out at the bakery.")])
    application = (
        {"context": search | joined, "question": RunnablePassthrough()}
        | PROMPT
        | chat("You get the key at the bakery. Bring your passport.")
        | StrOutputParser()
    )
    application.invoke("Where do I get the key?", config)


@app(
    "a chain over messages that looks at the last one",
    question="¿Y los domingos?",
    answer="Los domingos abrimos a las once.",
    chunks=["Domingos: de 11 a 15 horas"],
    absent=["Entre semana abrimos a las nueve en punto."],
)
def last_message(config):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Horario:\n{context}"), ("placeholder", "{messages}")]
    )
    application = (
        RunnablePassthrough.assign(
            context=(lambda given: given["messages"][-1][1])
            | finding("Domingos: de 11 a 15 horas")
            | joined
        )
        | prompt
        | chat("Los domingos abrimos a las once.")
    )
    messages = [
        ("user", "¿Cuándo abren?"),
        ("assistant", "Entre semana abrimos a las nueve en punto."),
        ("user", "¿Y los domingos?"),
    ]
    application.invoke({"messages": messages}, config)


@app(
    "hits with a rating that a filter of a model's chose",
    question="Find a film for children from Estonia.",
    answer="Try 'Kalle and the Bear', rated 8.1.",
    chunks=["Kalle and the Bear: a boy befriends a bear."],
    prompt=["8.1"],
)
def self_query(config):
    films = [
        Document("Kalle and the Bear: a boy befriends a bear.", metadata={"rating": 8.1}),
        Document("The Harbour: a thriller.", metadata={"rating": 6.0}),
    ]

    class Filtering(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            wanted = chat('{"query": "children", "filter": "rating > 7"}').invoke(
                f"Make a filter: {query}", config={"callbacks": run_manager.get_child()}
            )
            return [film for film in films if film.metadata["rating"] > 7 and wanted]

    def shown(docs):
        return "\n".join(f"{d.page_content} ({d.metadata['rating']})" for d in docs)

    application = (
        {"context": Filtering() | shown, "question": RunnablePassthrough()}
        | PROMPT
        | chat("Try 'Kalle and the Bear', rated 8.1.")
    )
    application.invoke("Find a film for children from Estonia.", config)


@app(
    "a functional workflow that keeps its last answer",
    question="And in winter?",
    answer="In winter the ferry leaves at nine.",
    chunks=["Winter: first ferry at 9"],
    absent=["In summer the ferry leaves at six, every day."],
    cases=2,
)
def kept_answer(config):
    texts = {
        "When does the ferry leave?": (
            "Summer: first ferry at 6",
            "In summer the ferry leaves at six, every day.",
        ),
        "And in winter?": ("Winter: first ferry at 9", "In winter the ferry leaves at nine."),
    }

    @entrypoint(checkpointer=InMemorySaver())
    def answer(question: str, *, previous=None):
        text, reply = texts[question]
        docs = finding(text).invoke(question)
        asked = f"You said before: {previous}\n\n{joined(docs)}\n\n{question}"
        made = chat(reply).invoke(asked).text
        return entrypoint.final(value=made, save=made)

    for question in texts:
        answer.invoke(question, {**config, "configurable": {"thread_id": "quay"}})


@app(
    "documents that a model translates before they are shown",
    question="What is the deposit?",
    answer="The deposit is two months' rent.",
    chunks=["Die Kaution beträgt zwei Monatsmieten."],
    absent=["As a security you pay two monthly rents."],
)
def translated(config):
    def translate(docs):
        model = chat("As a security you pay two monthly rents.")
        return "\n".join(model.invoke(f"Into English:\n{d.page_content}").text for d in docs)

    application = (
        {
            "context": finding("Die Kaution beträgt zwei Monatsmieten.") | translate,
            "question": RunnablePassthrough(),
        }
        | PROMPT
        | chat("The deposit is two months' rent.")
        | StrOutputParser()
    )
    application.invoke("What is the deposit?", config)


@app(
    "an answer of which code drops the sentences without a source",
    question="When and where is the choir?",
    answer="The choir meets on Thursdays [1]. It sings in the chapel [1].",
    chunks=["Choir: Thursdays, chapel"],
)
def dropped_sentences(config):
    reply = (
        "The choir meets on Thursdays [1]. New voices are always welcome. "
        "It sings in the chapel [1]."
    )

    def keep_cited(text):
        return " ".join(each for each in re.split(r"(?<=\.) ", text) if "[" in each)

    application = (
        {
            "context": Found(documents=[Document("Choir: Thursdays, chapel")])
            | (lambda docs: "\n".join(f"[{n}] {d.page_content}" for n, d in enumerate(docs, 1))),
            "question": RunnablePassthrough(),
        }
        | PROMPT
        | chat(reply)
        | StrOutputParser()
        | RunnableLambda(keep_cited)
    )
    application.invoke("When and where is the choir?", config)

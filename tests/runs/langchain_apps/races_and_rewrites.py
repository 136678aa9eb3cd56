"""Chains that race or fall back, rewritten state, and answers beside their documents."""

import asyncio
from typing import TypedDict

from harness import app
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from langchain_core.tools import tool
from langchain_fakes import chat, finding, joined
from langgraph.graph import END, START, StateGraph


@app(
    "corrective RAG whose state's question is rewritten",
    question="is gouda ok in pregnancy",
    answer="Gouda made of pasteurised milk is fine. Eat it twice a day.",
    chunks=["Hard cheese of pasteurised milk such as Gouda is considered safe."],
    absent=["Camembert is a soft cheese.", "Gouda cheese pregnancy safety"],
    invented=["Eat it twice a day."],
)
def corrective(config):
    class State(TypedDict, total=False):
        question: str
        generation: str
        web_search: str
        documents: list[Document]

    def retrieve(state):
        return {"documents": finding("Camembert is a soft cheese.").invoke(state["question"])}

    def grade(state):
        kept = [
            d
            for d in state["documents"]
            if chat("no").invoke(f"{d.page_content} relevant to {state['question']}?").text == "yes"
        ]
        return {"documents": kept, "web_search": "Yes"}

    def transform(state):
        return {
            "question": chat("Gouda cheese pregnancy safety")
            .invoke(f"Rewrite: {state['question']}")
            .text
        }

    def web(state):
        found = search.invoke({"query": state["question"]})
        return {"documents": [*state["documents"], Document(found)]}

    @tool
    def search(query: str) -> str:
        """Search the web."""
        return "Hard cheese of pasteurised milk such as Gouda is considered safe."

    def generate(state):
        prompt = ChatPromptTemplate.from_template(
            "Question: {question}\nContext: {context}\nAnswer:"
        )
        model = chat("Gouda made of pasteurised milk is fine. Eat it twice a day.")
        made = (prompt | model | StrOutputParser()).invoke(
            {"context": joined(state["documents"]), "question": state["question"]}
        )
        return {"generation": made}

    graph = StateGraph(State)
    for node in (retrieve, grade, transform, web, generate):
        graph.add_node(node)
    for pair in (
        (START, "retrieve"),
        ("retrieve", "grade"),
        ("grade", "transform"),
        ("transform", "web"),
        ("web", "generate"),
        ("generate", END),
    ):
        graph.add_edge(*pair)
    graph.compile().invoke({"question": "is gouda ok in pregnancy"}, config)


@app(
    "a fallback to another whole chain with another index",
    question="When is the herb market?",
    answer="The herb market is on Fridays.",
    chunks=["Herb market: Fridays."],
    absent=["Flea market: Sundays."],
)
def whole_fallback(config):
    def fail(messages):
        raise TimeoutError

    def rag(text, model):
        return (
            {"context": finding(text) | joined, "question": RunnablePassthrough()}
            | ChatPromptTemplate.from_template("{context}\n{question}")
            | model
            | StrOutputParser()
        )

    made = rag("Flea market: Sundays.", chat(fail)).with_fallbacks(
        [rag("Herb market: Fridays.", chat("The herb market is on Fridays."))]
    )
    made.invoke("When is the herb market?", config)


@app(
    "two chains that race, the slower one cancelled",
    question="Which bakery is open?",
    answer="Bakery Sol is open.",
    chunks=["Sol: open until 18."],
    absent=["Luna: closed."],
)
async def race(config):
    def rag(text, wait, reply):
        async def slow(value):
            await asyncio.sleep(wait)
            return value

        return (
            {"context": finding(text) | joined, "question": RunnablePassthrough()}
            | ChatPromptTemplate.from_template("{context}\n{question}")
            | RunnableLambda(slow)
            | chat(reply)
            | StrOutputParser()
        )

    @chain
    async def first(question):
        tasks = [
            asyncio.create_task(rag("Luna: closed.", 5, "Luna is closed.").ainvoke(question)),
            asyncio.create_task(
                rag("Sol: open until 18.", 0.01, "Bakery Sol is open.").ainvoke(question)
            ),
        ]
        done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        return done.pop().result()

    await first.ainvoke("Which bakery is open?", config)


@app(
    "two users with the same question in tasks of plain functions",
    question="What is my balance?",
    answer="You have 100 EUR.",
    chunks=["Balance: 100 EUR"],
    absent=["Balance: 10 EUR"],
    cases=2,
    attached=True,
)
async def same_question(config):
    async def serve(amount, wait):
        docs = await finding(f"Balance: {amount} EUR").ainvoke("What is my balance?")
        await asyncio.sleep(wait)
        await chat(f"You have {amount} EUR.").ainvoke(
            [SystemMessage(joined(docs)), HumanMessage("What is my balance?")]
        )

    await asyncio.gather(serve(10, 0.01), serve(100, 0.03))


@app(
    "frequently asked questions of the application's in the prompt",
    question="Can I pay with coins?",
    answer="Coins are taken up to 20 EUR. Notes are not.",
    prompt=["Coins are taken up to 20 EUR."],
    invented=["Notes are not."],
)
def faq(config):
    @chain
    def answer(question):
        known = {
            "Do you take cards?": "Cards are taken.",
            "Do you take coins?": "Coins are taken up to 20 EUR.",
        }
        text = "\n\n".join(f"Q: {q}\nA: {a}" for q, a in known.items())
        prompt = ChatPromptTemplate.from_messages(
            [("system", "Answer from our FAQ:\n{faq}"), ("human", "{question}")]
        )
        model = chat("Coins are taken up to 20 EUR. Notes are not.")
        return (prompt | model | StrOutputParser()).invoke({"faq": text, "question": question})

    answer.invoke("Can I pay with coins?", config)


@app(
    "a function of a chain that returns the answer and its documents",
    question="When do the swans leave?",
    answer="The swans leave in October.",
    chunks=["Swans leave in October."],
)
def answer_and_documents(config):
    @chain
    def answer(question):
        docs = finding("Swans leave in October.").invoke(question)
        return chat("The swans leave in October.").invoke(f"{joined(docs)}\n{question}").text, docs

    answer.invoke("When do the swans leave?", config)


@app(
    "a decorated service that returns a pair with scores",
    question="When do the storks leave?",
    answer=["The storks leave in August."],
    chunks=["Storks leave in August."],
)
def answer_and_scores(config):
    @chain
    def answer(question):
        docs = finding("Storks leave in August.").invoke(question)
        return chat("The storks leave in August.").invoke(f"{joined(docs)}\n{question}").text, [
            (doc, 0.9) for doc in docs
        ]

    answer.invoke("When do the storks leave?", config)

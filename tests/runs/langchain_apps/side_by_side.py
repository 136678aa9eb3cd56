"""Requests of several users that run side by side, or in turns."""

import asyncio

from harness import app
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_fakes import (
    Found,
    chat,
    finding,
    joined,
)
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import Field

TREES = {
    "oak": "The oak in the yard was planted in 1890.",
    "lime": "The lime by the church was planted in 1923.",
    "beech": "The beech at the mill was planted in 1951.",
}
SAID = {
    "oak": "The oak dates from 1890.",
    "lime": "The lime dates from 1923.",
    "beech": "The beech dates from 1951.",
}


def tree_in(text):
    return next(name for name in TREES if name in text)


class Trees(Found):
    documents: list = Field(default_factory=list)

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(TREES[tree_in(query)])]

    async def _aget_relevant_documents(self, query, *, run_manager):
        await asyncio.sleep(0.005)
        return [Document(TREES[tree_in(query)])]


def answering():
    return chat(lambda messages: SAID[tree_in(messages[-1].text)])


QUESTIONS = [f"When was the {name} planted?" for name in TREES]


@app(
    "all searches in one loop, then all models in another",
    question=QUESTIONS[1],
    answer=SAID["lime"],
    chunks=[TREES["lime"]],
    absent=[TREES["oak"], TREES["beech"]],
    cases=3,
    attached=True,
    status="not_rag",
)
def loops(config):
    retriever, model = Trees(), answering()
    found = {question: retriever.invoke(question) for question in QUESTIONS}
    for question, docs in found.items():
        model.invoke([SystemMessage(f"Answer from:\n{joined(docs)}"), HumanMessage(question)])


@app(
    "gathered searches, then gathered models in one function",
    question=QUESTIONS[2],
    answer=SAID["beech"],
    chunks=[TREES["beech"]],
    absent=[TREES["lime"], TREES["oak"]],
    cases=3,
    attached=True,
    status="not_rag",
)
async def gathers(config):
    retriever, model = Trees(), answering()
    found = await asyncio.gather(*(retriever.ainvoke(q) for q in QUESTIONS))
    await asyncio.gather(
        *(
            model.ainvoke([("system", f"Answer from:\n{joined(docs)}"), ("human", question)])
            for question, docs in zip(QUESTIONS, found, strict=True)
        )
    )


@app(
    "generators of three users that one thread advances in turn",
    question=QUESTIONS[1],
    answer=SAID["lime"],
    chunks=[TREES["lime"]],
    absent=[TREES["oak"], TREES["beech"]],
    cases=3,
    attached=True,
)
def generators(config):
    retriever, model = Trees(), answering()

    def serve(question):
        docs = retriever.invoke(question)
        yield "searching"
        prompt = [SystemMessage(f"Answer from:\n{joined(docs)}"), HumanMessage(question)]
        for piece in model.stream(prompt):
            yield piece.text

    open_ = [serve(question) for question in QUESTIONS]
    while open_:
        open_ = [each for each in open_ if next(each, None) is not None]


@app(
    "three users in tasks, each a plain function that streams",
    question=QUESTIONS[0],
    answer=SAID["oak"],
    chunks=[TREES["oak"]],
    absent=[TREES["lime"], TREES["beech"]],
    cases=3,
    attached=True,
)
async def tasks(config):
    retriever, model = Trees(), answering()

    async def serve(question):
        docs = await retriever.ainvoke(question)
        text = ""
        async for piece in model.astream(
            f"Use the context.\n<context>\n{joined(docs)}\n</context>\n\n{question}"
        ):
            await asyncio.sleep(0)
            text += piece.text
        return text

    await asyncio.gather(*map(serve, QUESTIONS))


@app(
    "a chain that is mapped over the questions of one request",
    question=QUESTIONS[0],
    answer=SAID["oak"],
    chunks=[TREES["oak"]],
    absent=[TREES["lime"]],
    cases=3,
)
def mapped(config):
    made = (
        {"context": Trees() | joined, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("{context}\nQuestion: {question}")
        | answering()
        | StrOutputParser()
    )
    made.map().invoke(QUESTIONS, config)


@app(
    "abatch_as_completed of a chain for three users",
    question=QUESTIONS[1],
    answer=SAID["lime"],
    chunks=[TREES["lime"]],
    absent=[TREES["oak"], TREES["beech"]],
    cases=3,
)
async def as_completed(config):
    made = (
        {"context": Trees() | joined, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("{context}\nQuestion: {question}")
        | answering()
        | StrOutputParser()
    )
    async for _ in made.abatch_as_completed(QUESTIONS, [config] * 3):
        pass


@app(
    "two sessions whose turns are interleaved in one chain with histories",
    question="And on Sundays?",
    answer="On Sundays it is closed.",
    chunks=["The bath is open 7-21, closed on Sundays."],
    absent=["The zoo opens at nine.", "The zoo is open from 9 on every day."],
    cases=4,
)
async def sessions(config):
    kept = {}

    def history(session_id):
        return kept.setdefault(session_id, InMemoryChatMessageHistory())

    texts = {
        "bath": "The bath is open 7-21, closed on Sundays.",
        "zoo": "The zoo is open from 9 on every day.",
    }

    def context(given, config):
        return joined(
            finding(texts[config["configurable"]["session_id"]]).invoke(given["question"])
        )

    def reply(messages):
        if "bath" in messages[0].text:
            return "On Sundays it is closed." if len(messages) > 2 else "The bath opens at seven."
        return "Always from nine." if len(messages) > 2 else "The zoo opens at nine."

    prompt = ChatPromptTemplate.from_messages(
        [("system", "{context}"), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    made = RunnableWithMessageHistory(
        RunnablePassthrough.assign(context=context) | prompt | chat(reply) | StrOutputParser(),
        history,
        input_messages_key="question",
        history_messages_key="history",
    )

    async def ask(name, *questions):
        for question in questions:
            await made.ainvoke(
                {"question": question}, {**config, "configurable": {"session_id": name}}
            )

    await asyncio.gather(
        ask("zoo", "When does the zoo open?", "And at Easter?"),
        ask("bath", "When does the bath open?", "And on Sundays?"),
    )


@app(
    "requests of two users that one coroutine serves in turns, with the model asked later",
    question="What does locker 2 cost?",
    answer="Locker 2 costs 4 EUR.",
    chunks=["Locker 2: 4 EUR"],
    absent=["Locker 1: 2 EUR"],
    cases=2,
    attached=True,
)
async def later(config):
    model = chat(
        lambda messages: (
            "Locker 2 costs 4 EUR." if "locker 2" in messages[-1].text else "Locker 1 costs 2 EUR."
        )
    )
    waiting = []
    for n in (1, 2):
        question = f"What does locker {n} cost?"
        waiting.append((question, await finding(f"Locker {n}: {2 * n} EUR").ainvoke(question)))
    for question, docs in reversed(waiting):
        await model.ainvoke([SystemMessage(joined(docs)), HumanMessage(question)])


@app(
    "a title that a chain writes beside the answer, in a task of its own",
    question="How do I prune roses?",
    answer="Cut roses above an outward bud.",
    chunks=["Roses are cut above a bud that faces outward."],
    absent=["Rose pruning chat"],
)
async def title(config):
    graph = StateGraph(MessagesState)

    async def answer(state: MessagesState):
        question = state["messages"][-1].text
        docs = await finding("Roses are cut above a bud that faces outward.").ainvoke(question)
        naming = asyncio.create_task(chat("Rose pruning chat").ainvoke(f"Title for: {question}"))
        reply = await chat("Cut roses above an outward bud.").ainvoke(
            [SystemMessage(joined(docs)), *state["messages"]]
        )
        await naming
        return {"messages": [reply]}

    graph.add_node(answer)
    graph.add_edge(START, "answer")
    await graph.compile().ainvoke({"messages": [HumanMessage("How do I prune roses?")]}, config)

"""Several users, threads and batches: what one was shown is no evidence for another."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough, chain
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.tools import tool
from langchain_fakes import Found, calling, chat, documents, finding, joined
from langgraph.graph import START, StateGraph

ACCOUNTS = {
    "Amal": "Amal's account holds 310 EUR since the refund of the kettle.",
    "Bruno": "Bruno's account holds 95 EUR and a voucher for the cinema.",
    "Chloe": "Chloe's account is frozen because of a returned debit.",
}
REPLIES = {
    "Amal": "Amal has 310 EUR.",
    "Bruno": "Bruno has 95 EUR.",
    "Chloe": "The account of Chloe is frozen.",
}


def name_in(text):
    return next(name for name in ACCOUNTS if name in text)


def account_chain():
    prompt = ChatPromptTemplate.from_messages([("system", "{account}"), ("human", "{question}")])
    search = RunnableLambda(lambda question: finding(ACCOUNTS[name_in(question)]).invoke(question))
    reply = chat(*[lambda messages: REPLIES[name_in(messages[-1].text)]])
    return (
        {"account": search | joined, "question": RunnablePassthrough()}
        | prompt
        | reply
        | StrOutputParser()
    )


@app(
    "a batch of three users",
    question="What does Bruno have?",
    answer="Bruno has 95 EUR.",
    chunks=[ACCOUNTS["Bruno"]],
    absent=[ACCOUNTS["Amal"], ACCOUNTS["Chloe"]],
    cases=3,
)
def batch(config):
    account_chain().batch([f"What does {name} have?" for name in ACCOUNTS], config)


@app(
    "three users in threads",
    question="What does Amal have?",
    answer="Amal has 310 EUR.",
    chunks=[ACCOUNTS["Amal"]],
    absent=[ACCOUNTS["Bruno"], ACCOUNTS["Chloe"]],
    cases=3,
)
def threads(config):
    application = account_chain()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: application.invoke(f"What does {name} have?", config), ACCOUNTS))


@app(
    "three users in tasks, whose tools overlap",
    question="What does Chloe have?",
    answer="The account of Chloe is frozen.",
    chunks=[ACCOUNTS["Chloe"]],
    absent=[ACCOUNTS["Amal"], ACCOUNTS["Bruno"]],
    cases=3,
)
async def tasks(config):
    @tool
    async def account(name: str) -> str:
        """Reads an account."""
        await asyncio.sleep(0.02)
        return ACCOUNTS[name]

    async def ask(name):
        agent = create_agent(chat(calling("account", name=name), REPLIES[name]), [account])
        await agent.ainvoke({"messages": [HumanMessage(f"What does {name} have?")]}, config)

    await asyncio.gather(*(ask(name) for name in ACCOUNTS))


@app(
    "two retrievers that a function asks in a pool",
    question="What do I need for the ferry?",
    answer="A passport and a ticket for the bicycle.",
    chunks=["A passport is needed on the ferry.", "Bicycles need a ticket of their own."],
)
def pool(config):
    retrievers = [
        finding("A passport is needed on the ferry."),
        finding("Bicycles need a ticket of their own."),
    ]

    @chain
    def ask(question):
        with ContextThreadPoolExecutor(2) as workers:
            lists = list(workers.map(lambda retriever: retriever.invoke(question), retrievers))
        context = joined([doc for found in lists for doc in found])
        return (
            chat("A passport and a ticket for the bicycle.").invoke(f"{context}\n{question}").text
        )

    ask.invoke("What do I need for the ferry?", config)


@app(
    "searches in a pool that copies no context",
    question="Was brauche ich für die Fähre?",
    answer="Einen Reisepass und eine Fahrradkarte. Hunde fahren umsonst.",
    prompt=["Auf der Fähre braucht man einen Reisepass.", "Räder brauchen eine Fahrradkarte."],
    invented=["Hunde fahren umsonst."],
)
def bare_pool(config):
    texts = ["Auf der Fähre braucht man einen Reisepass.", "Räder brauchen eine Fahrradkarte."]

    def search(state):
        with ThreadPoolExecutor(2) as workers:
            jobs = [workers.submit(finding(text).invoke, state["question"]) for text in texts]
            return {**state, "found": [doc for job in jobs for doc in job.result()]}

    def answer(state):
        asked = f"{joined(state['found'])}\n\n{state['question']}"
        model = chat("Einen Reisepass und eine Fahrradkarte. Hunde fahren umsonst.")
        return model.invoke(asked).content

    (RunnableLambda(search) | RunnableLambda(answer)).invoke(
        {"question": "Was brauche ich für die Fähre?"}, config
    )


@app(
    "searches gathered in tasks",
    question="Which permits do I need for the festival?",
    answer="You need a permit for noise and one for food.",
    chunks=["Music after ten needs a noise permit.", "Selling food needs a permit of the town."],
)
async def gathered(config):
    class State(TypedDict, total=False):
        question: str
        texts: list[str]
        answer: str

    async def search(state: State):
        sources = [
            finding("Music after ten needs a noise permit."),
            finding("Selling food needs a permit of the town."),
        ]
        lists = await asyncio.gather(*(each.ainvoke(state["question"]) for each in sources))
        return {"texts": [doc.page_content for docs in lists for doc in docs]}

    async def answer(state: State):
        listed = "\n".join(state["texts"])
        made = await chat("You need a permit for noise and one for food.").ainvoke(
            f"{listed}\n\n{state['question']}"
        )
        return {"answer": made.text}

    graph = StateGraph(State)
    graph.add_sequence([search, answer])
    graph.add_edge(START, "search")
    await graph.compile().ainvoke({"question": "Which permits do I need for the festival?"}, config)


@app(
    "two users in turn",
    question="What is my limit?",
    answer="Your limit is 500 EUR.",
    chunks=["The limit of account 77 is 500 EUR."],
    absent=["The limit of account 12 is 9,000 EUR."],
    cases=2,
)
def shared_retriever(config):
    limits = {
        "77": "The limit of account 77 is 500 EUR.",
        "12": "The limit of account 12 is 9,000 EUR.",
    }
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")

    def ask(account, reply):
        return (
            RunnablePassthrough.assign(
                context=itemgetter("question") | finding(limits[account]) | joined
            )
            | prompt
            | chat(reply)
        )

    ask("12", "Your limit is 9,000 EUR.").invoke({"question": "How high is my limit?"}, config)
    ask("77", "Your limit is 500 EUR.").invoke({"question": "What is my limit?"}, config)


@app(
    "a routed search over departments",
    question="How do I get a parking permit?",
    answer="Apply for it at the traffic office. It takes a week.",
    chunks=["Parking permits are issued by the traffic office."],
    absent=["Wedding dates are given by the registry office."],
    invented=["It takes a week."],
)
def routed(config):
    departments = RunnableParallel(
        traffic=finding("Parking permits are issued by the traffic office."),
        registry=finding("Wedding dates are given by the registry office."),
    )
    router = ChatPromptTemplate.from_template("Which office? {question}") | chat("traffic")
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")

    def pick(given):
        return joined(given["found"][given["office"].content])

    application = (
        RunnablePassthrough.assign(
            found=itemgetter("question") | departments, office=router
        ).assign(context=pick)
        | prompt
        | chat("Apply for it at the traffic office. It takes a week.")
        | StrOutputParser()
    )
    application.invoke({"question": "How do I get a parking permit?"}, config)


@app(
    "documents that were found but never shown",
    question="Who can lend me a ladder?",
    answer="The neighbours' club lends ladders.",
    chunks=["The neighbours' club lends ladders and drills."],
    absent=["Ladders are sold from 79 EUR.", "A ladder has rungs."],
)
def never_shown(config):
    @chain
    def ask(question):
        found = Found(
            documents=documents(
                "Ladders are sold from 79 EUR.",
                "The neighbours' club lends ladders and drills.",
                "A ladder has rungs.",
            )
        ).invoke(question)
        best = [doc for doc in found if "lend" in doc.page_content]
        reply = chat("The neighbours' club lends ladders.").invoke(f"{joined(best)}\n{question}")
        return {"answer": reply.content, "all_documents": found}

    ask.invoke("Who can lend me a ladder?", config)

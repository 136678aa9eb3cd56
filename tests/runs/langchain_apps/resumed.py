"""Runs that a person, or the application, interrupts and resumes."""

from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
)
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import calling, chat, finding, joined
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


def thread(config, name="one"):
    return {**config, "configurable": {"thread_id": name}}


@app(
    "a refund that a person approves after the search",
    question="My kettle leaks. Can I get a refund for order 4411?",
    answer="I refunded order 4411: 39 EUR, because the kettle is within its two years.",
    chunks=[
        "Leaking kettles are refunded within two years of purchase.",
        "Refund of 39 EUR for order 4411 issued.",
    ],
    absent=["Please approve"],
    status="interrupted",
)
def approved(config):
    policy = create_retriever_tool(
        finding("Leaking kettles are refunded within two years of purchase."), "policy", "Policies."
    )

    @tool
    def refund(order: int) -> str:
        """Refund an order."""
        return f"Refund of 39 EUR for order {order} issued."

    agent = create_agent(
        chat(
            calling("policy", query="leaking kettle refund"),
            calling("refund", order=4411),
            "I refunded order 4411: 39 EUR, because the kettle is within its two years.",
        ),
        [policy, refund],
        middleware=[
            HumanInTheLoopMiddleware({"refund": True}, description_prefix="Please approve")
        ],
        checkpointer=InMemorySaver(),
    )
    given = thread(config)
    agent.invoke(
        {"messages": [HumanMessage("My kettle leaks. Can I get a refund for order 4411?")]}, given
    )
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), given)


@app(
    "a transfer that a person rejects with a reason",
    question="Move 900 EUR to my sister, please.",
    answer="The transfer was not made: the daily limit is 500 EUR. Try again after midnight UTC.",
    prompt=["Not allowed: the daily limit is 500 EUR"],
    invented=["Try again after midnight UTC."],
    status=["interrupted", "no_context"],
)
def rejected(config):
    @tool
    def transfer(amount: int, to: str) -> str:
        """Transfer money."""
        return "done"

    agent = create_agent(
        chat(
            calling("transfer", amount=900, to="sister"),
            "The transfer was not made: the daily limit is 500 EUR. Try again after midnight UTC.",
        ),
        [transfer],
        middleware=[
            HumanInTheLoopMiddleware({"transfer": {"allowed_decisions": ["approve", "reject"]}})
        ],
        checkpointer=InMemorySaver(),
    )
    given = thread(config)
    agent.invoke({"messages": [HumanMessage("Move 900 EUR to my sister, please.")]}, given)
    agent.invoke(
        Command(
            resume={
                "decisions": [
                    {"type": "reject", "message": "Not allowed: the daily limit is 500 EUR"}
                ]
            }
        ),
        given,
    )


@app(
    "a call whose arguments a person edits",
    question="Book the court for Tuesday at eight.",
    answer="The court is booked for Wednesday at eight, court 2.",
    chunks=["Booked: Wed 8:00, court 2"],
    status="interrupted",
)
def edited(config):
    @tool
    def book(day: str) -> str:
        """Book a court."""
        return f"Booked: {day} 8:00, court 2"

    agent = create_agent(
        chat(calling("book", day="Tue"), "The court is booked for Wednesday at eight, court 2."),
        [book],
        middleware=[HumanInTheLoopMiddleware({"book": True})],
        checkpointer=InMemorySaver(),
    )
    given = {**config, "configurable": {"thread_id": "e"}}
    agent.invoke({"messages": [HumanMessage("Book the court for Tuesday at eight.")]}, given)
    decision = {"type": "edit", "edited_action": {"name": "book", "args": {"day": "Wed"}}}
    agent.invoke(Command(resume={"decisions": [decision]}), given)


@app(
    "a graph that asks which product is meant and goes on",
    question="How long is the guarantee?",
    answer="The guarantee of the Mistral fan is three years.",
    chunks=["Mistral fan: guarantee of three years, excluding the remote."],
    allowed=["the Mistral fan", "Which product do you mean?"],
    status="interrupted",
)
def clarified(config):
    class State(TypedDict, total=False):
        question: str
        product: str
        docs: list[Document]
        answer: str

    def clarify(state: State):
        return {"product": interrupt("Which product do you mean?")}

    def retrieve(state: State):
        return {
            "docs": finding("Mistral fan: guarantee of three years, excluding the remote.").invoke(
                f"{state['question']} {state['product']}"
            )
        }

    def generate(state: State):
        prompt = ChatPromptTemplate.from_template(
            "Product: {product}\nContext: {context}\nQuestion: {question}"
        )
        reply = (prompt | chat("The guarantee of the Mistral fan is three years.")).invoke(
            {
                "product": state["product"],
                "context": joined(state["docs"]),
                "question": state["question"],
            }
        )
        return {"answer": reply.content}

    graph = StateGraph(State)
    graph.add_node(clarify)
    graph.add_node(retrieve)
    graph.add_node(generate)
    graph.add_edge(START, "clarify")
    graph.add_edge("clarify", "retrieve")
    graph.add_edge("retrieve", "generate")
    made = graph.compile(checkpointer=InMemorySaver())
    given = thread(config)
    made.invoke({"question": "How long is the guarantee?"}, given)
    made.invoke(Command(resume="the Mistral fan"), given)


@app(
    "a tool that asks a person and gives back what they said",
    question="Is the hall free on Saturday?",
    answer="Yes: Petra says it is free until six in the evening.",
    chunks=["Petra: free on Saturday, but only until 18:00"],
    status="interrupted",
)
async def asks_person(config):
    @tool
    def ask_caretaker(query: str) -> str:
        """Ask the caretaker."""
        said = interrupt({"query": query})
        return said["data"]

    agent = create_agent(
        chat(
            calling("ask_caretaker", query="Is the hall free on Saturday?"),
            "Yes: Petra says it is free until six in the evening.",
        ),
        [ask_caretaker],
        checkpointer=InMemorySaver(),
    )
    given = thread(config)
    async for _ in agent.astream(
        {"messages": [HumanMessage("Is the hall free on Saturday?")]}, given, stream_mode="updates"
    ):
        pass
    async for _ in agent.astream(
        Command(resume={"data": "Petra: free on Saturday, but only until 18:00"}),
        given,
        stream_mode="updates",
    ):
        pass


@app(
    "a run that goes on after its state was corrected",
    question="What does the annual pass cost?",
    answer="The annual pass costs 89 EUR from this year on.",
    chunks=["Annual pass: 89 EUR (new price)."],
    absent=["Annual pass: 79 EUR."],
    status="interrupted",
)
def corrected(config):
    class State(TypedDict, total=False):
        question: str
        docs: list[str]
        answer: str

    def retrieve(state: State):
        return {
            "docs": [
                doc.page_content
                for doc in finding("Annual pass: 79 EUR.").invoke(state["question"])
            ]
        }

    def generate(state: State):
        reply = chat("The annual pass costs 89 EUR from this year on.").invoke(
            f"Context: {state['docs']}\nQuestion: {state['question']}"
        )
        return {"answer": reply.content}

    graph = StateGraph(State)
    graph.add_node(retrieve)
    graph.add_node(generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    made = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["generate"])
    given = thread(config)
    made.invoke({"question": "What does the annual pass cost?"}, given)
    made.update_state(given, {"docs": ["Annual pass: 89 EUR (new price)."]})
    made.invoke(None, given)


@app(
    "a search that the second asking finds in a node's cache",
    question="When is the tip open?",
    answer="The tip is open on Wednesdays from 14 to 18.",
    chunks=["Recycling tip: Wednesdays 14-18, Saturdays 9-12."],
    cases=2,
)
def cached(config):
    from langgraph.cache.memory import InMemoryCache
    from langgraph.types import CachePolicy

    class State(TypedDict, total=False):
        question: str
        docs: list[Document]
        answer: str

    def retrieve(state: State):
        return {
            "docs": finding("Recycling tip: Wednesdays 14-18, Saturdays 9-12.").invoke(
                state["question"]
            )
        }

    def generate(state: State):
        return {
            "answer": chat("The tip is open on Wednesdays from 14 to 18.")
            .invoke([("system", joined(state["docs"])), ("human", state["question"])])
            .text
        }

    graph = StateGraph(State)
    graph.add_node(retrieve, cache_policy=CachePolicy(ttl=60))
    graph.add_node(generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    made = graph.compile(cache=InMemoryCache())
    for _ in range(2):
        made.invoke({"question": "When is the tip open?"}, config)

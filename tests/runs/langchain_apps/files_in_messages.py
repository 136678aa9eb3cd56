"""Applications whose users send a file in the message that asks, or next to it."""

from functools import partial

from harness import app
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from langchain_fakes import calling, chat, finding, joined
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

RENT = "The monthly rent is 1,240 euros."
PETS = "Pets need the written consent of the landlord."
LEASE = f"LEASE CONTRACT\n{RENT} The deposit equals three rents.\n{PETS}\nSigned: Ada Lind"
ASKED = "What must I know before I sign?"
SMOKING = "Smoking on the balcony is banned."
ANSWER = f"The rent is 1,240 euros a month. Pets need the landlord's consent. {SMOKING}"
ON_LEASE = {
    "question": ASKED,
    "answer": ANSWER,
    "prompt": [RENT, PETS],
    "invented": [SMOKING],
}


def block(text):
    return {"type": "text", "text": text}


MESSAGES = {
    "a block after the question": [
        HumanMessage([block(ASKED), block(f"<file name='lease.txt'>\n{LEASE}\n</file>")])
    ],
    "a plain block after the question": [HumanMessage([block(ASKED), block(LEASE)])],
    "a plain block before the question": [HumanMessage([block(LEASE), block(ASKED)])],
    "an element before the question": [
        HumanMessage(f"<document>\n{LEASE}\n</document>\n\n{ASKED}")
    ],
    "an element after the question": [
        HumanMessage(f'{ASKED}\n<attachment type="text">{LEASE}</attachment>')
    ],
    "an element before an element that asks": [
        HumanMessage(f"<context>\n{LEASE}\n</context>\n<question>\n{ASKED}\n</question>")
    ],
    "a fence after the question": [HumanMessage(f"{ASKED}\n\n```\n{LEASE}\n```")],
    "a message before the question": [HumanMessage(f"lease.txt:\n{LEASE}"), HumanMessage(ASKED)],
    "a message after the question": [
        HumanMessage(ASKED),
        HumanMessage(f"<file>\n{LEASE}\n</file>"),
    ],
}


def ask_agent(messages, config):
    agent = create_agent(chat(ANSWER), [], system_prompt="You are a legal assistant.")
    agent.invoke({"messages": messages}, config)


for place, sent in MESSAGES.items():
    app(f"a file in {place}", **ON_LEASE)(partial(ask_agent, sent))


@app(
    "a file between a lead-in and the question",
    **{**ON_LEASE, "question": f"Here is my lease.\n\n{ASKED}"},
)
async def between(config):
    async def node(state: MessagesState):
        return {"messages": [await chat(ANSWER).ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(node).add_edge(START, "node").compile()
    text = f"Here is my lease.\n<file>\n{LEASE}\n</file>\n{ASKED}"
    async for _ in graph.astream({"messages": [("user", text)]}, config):
        pass


@app("a file in the only input of a chain", **ON_LEASE)
def chain_input(config):
    prompt = ChatPromptTemplate.from_template("You are a legal assistant.\n{input}")
    chain = {"input": RunnablePassthrough()} | prompt | chat(ANSWER) | StrOutputParser()
    chain.invoke(f"<document>\n{LEASE}\n</document>\n{ASKED}", config)


@app(
    "an answer that has nothing of the file",
    question=ASKED,
    answer=SMOKING,
    prompt=[RENT, PETS],
    invented=[SMOKING],
)
def all_invented(config):
    agent = create_agent(chat(SMOKING), [])
    agent.invoke({"messages": MESSAGES["an element before the question"]}, config)


@app("a file that nobody asks about", status="no_question")
def only_a_file(config):
    ask_agent([HumanMessage(f"<file>\n{LEASE}\n</file>")], config)


@app(
    "a second question about a file of the first turn",
    question="And what about pets?",
    answer="Pets need the landlord's consent. Goldfish are free.",
    prompt=[PETS],
    invented=["Goldfish are free."],
    cases=2,
)
def second_turn(config):
    agent = create_agent(
        chat(ANSWER, "Pets need the landlord's consent. Goldfish are free."),
        [],
        checkpointer=InMemorySaver(),
    )
    thread = {**config, "configurable": {"thread_id": "lease"}}
    first = f"<file>\n{LEASE}\n</file>\n{ASKED}"
    for text in (first, "And what about pets?"):
        agent.invoke({"messages": [("user", text)]}, thread)


@app(
    "a file and a search in one turn",
    question=ASKED,
    answer=f"{ANSWER} The law allows a deposit of two rents.",
    chunks=["The law allows a deposit of at most two rents."],
    prompt=[RENT, PETS],
    invented=[SMOKING],
)
def with_a_search(config):
    @tool
    def law(query: str) -> str:
        """Searches the law."""
        return joined(finding("The law allows a deposit of at most two rents.").invoke(query))

    said = f"{ANSWER} The law allows a deposit of two rents."
    agent = create_agent(chat(calling("law", query="deposit"), said), [law])
    agent.invoke({"messages": MESSAGES["an element before the question"]}, config)


@app(
    "code that is short and in the question",
    question="What does `<b>` do in <b>this</b> page?",
    answer="It makes text bold.",
    chunks=["The element b makes text bold."],
)
def code_in_the_question(config):
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    chain = (
        RunnablePassthrough.assign(context=lambda given: joined(found.invoke(given["question"])))
        | prompt
        | chat("It makes text bold.")
    )
    found = finding("The element b makes text bold.")
    chain.invoke({"question": "What does `<b>` do in <b>this</b> page?"}, config)


@app(
    "a second message of a few words",
    question="For how long is it free?",
    answer="It is free for thirty days.",
    chunks=["The trial is free for thirty days."],
    prompt=["I mean the trial."],
)
def two_short_messages(config):
    def node(state: MessagesState):
        notes = joined(finding("The trial is free for thirty days.").invoke("trial"))
        said = chat("It is free for thirty days.").invoke([("system", notes), *state["messages"]])
        return {"messages": [AIMessage(said.content)]}

    graph = StateGraph(MessagesState).add_node(node).add_edge(START, "node").compile()
    messages = [HumanMessage("I mean the trial."), HumanMessage("For how long is it free?")]
    graph.invoke({"messages": messages}, config)

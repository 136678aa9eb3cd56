"""Conversations that are written into a prompt as text: for completion models, and by hand."""

from functools import partial
from operator import itemgetter

from harness import app
from langchain_classic.memory import ConversationBufferMemory
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, get_buffer_string
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_fakes import Completing, chat, finding, joined
from langgraph.graph import START, MessagesState, StateGraph

TOLL = "The bridge at Visp charges lorries a toll of nine francs."
LIMIT = "The bridge at Visp carries twelve tonnes."
FIRST, ASKED = "What is the toll?", "And how much does it carry?"
BARON = "A baron built it of oak in 1702."
EARLIER = f"{TOLL} {BARON}\n\nHe was born in Brig.\nNote: cyclists were once charged an egg."
ANSWER = f"It carries twelve tonnes. {BARON}"
LATER = {
    "question": ASKED,
    "answer": ANSWER,
    "chunks": [TOLL, LIMIT],
    "absent": ["built it of oak", "charged an egg"],
    "invented": [BARON],
}
HISTORY = [HumanMessage(FIRST), AIMessage(EARLIER)]


def messages_prompt():
    return ChatPromptTemplate.from_messages(
        [("system", "{context}"), MessagesPlaceholder("history"), ("human", "{question}")]
    )


def rag(prompt, model):
    found = itemgetter("question") | finding(TOLL, LIMIT) | joined
    return RunnablePassthrough.assign(context=found) | prompt | model | StrOutputParser()


@app("a history in a completion model's prompt", **LATER)
def completed(config):
    chain = rag(messages_prompt(), Completing(replies=[ANSWER]))
    chain.invoke({"question": ASKED, "history": HISTORY}, config)


@app("a history in a completion model's streamed prompt", **LATER)
async def completed_in_a_stream(config):
    chain = rag(messages_prompt(), Completing(replies=[ANSWER]))
    pieces = chain.astream({"question": ASKED, "history": HISTORY}, config)
    assert "".join([piece async for piece in pieces]) == ANSWER


@app("two turns of a completion model with a message history", cases=2, **LATER)
def two_turns(config):
    history = InMemoryChatMessageHistory()
    chain = RunnableWithMessageHistory(
        rag(messages_prompt(), Completing(replies=[EARLIER, ANSWER])),
        lambda _: history,
        input_messages_key="question",
        history_messages_key="history",
    )
    for question in (FIRST, ASKED):
        chain.invoke({"question": question}, {**config, "configurable": {"session_id": "a"}})


@app("messages that a function writes for a completion model", **LATER)
def made_by_a_function(config):
    def messages(given):
        return [SystemMessage(given["context"]), *HISTORY, HumanMessage(given["question"])]

    chain = rag(RunnableLambda(messages), Completing(replies=[ANSWER]))
    chain.invoke({"question": ASKED}, config)


@app("messages of a graph's state for a completion model", **LATER)
def graph_state(config):
    def answer(state: MessagesState):
        notes = joined(finding(TOLL, LIMIT).invoke(state["messages"][-1].content))
        said = Completing(replies=[ANSWER]).invoke([SystemMessage(notes), *state["messages"]])
        return {"messages": [AIMessage(said)]}

    graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile()
    graph.invoke({"messages": [*HISTORY, HumanMessage(ASKED)]}, config)


@app("a buffer memory that is written into a template", **LATER)
def buffer_memory(config):
    memory = ConversationBufferMemory(memory_key="talk", ai_prefix="Bot", human_prefix="Customer")
    memory.save_context({"input": FIRST}, {"output": EARLIER})
    prompt = PromptTemplate.from_template(
        "Notes:\n{context}\n\nTalk so far:\n{talk}\nCustomer: {question}\nBot:"
    )
    talk = memory.load_memory_variables({})["talk"]
    rag(prompt, chat(ANSWER)).invoke({"question": ASKED, "talk": talk}, config)


WRITTEN = {
    "labels": lambda: get_buffer_string(HISTORY),
    "Python": lambda: str(HISTORY),
    "pairs": lambda: str([("human", FIRST), ("ai", EARLIER)]),
    "XML": lambda: get_buffer_string(HISTORY, format="xml"),
}


def by_hand(write, config):
    prompt = PromptTemplate.from_template("{context}\n\n{talk}\n\nQuestion: {question}")
    rag(prompt, chat(ANSWER)).invoke({"question": ASKED, "talk": write()}, config)


for form, write in WRITTEN.items():
    app(f"a history that is written into a prompt as {form}", **LATER)(partial(by_hand, write))

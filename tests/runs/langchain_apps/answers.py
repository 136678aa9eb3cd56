"""Applications whose answer is an object, a report, a draft that was revised, or a tool call."""

from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import calling, chat, finding, joined
from langgraph.graph import END, START, StateGraph
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

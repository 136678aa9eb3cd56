"""Graphs of LangGraph's tutorials: self-RAG, adaptive, subgraphs, interrupts, workflows."""

import operator
from typing import Annotated, Literal, TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import create_retriever_tool
from langchain_fakes import calling, chat, finding, joined, store
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import BaseModel

PROMPT = ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}\nAnswer:")


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    generation: str
    attempts: int


class Grade(BaseModel):
    binary_score: str


def sequence(state, *nodes):
    builder = StateGraph(state)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    return builder


@app(
    "self-RAG that writes a second answer",
    question="How long does the ferry take?",
    answer="The ferry takes 55 minutes.",
    chunks=["The crossing takes 55 minutes."],
    absent=["The ferry takes two days.", "The harbour has a café."],
)
def self_rag(config):
    writer = chat("The ferry takes two days.", "The ferry takes 55 minutes.")
    grader = chat(
        calling("Grade", binary_score="yes"),
        calling("Grade", binary_score="no"),
        calling("Grade", binary_score="no"),
        calling("Grade", binary_score="yes"),
    ).with_structured_output(Grade)

    def retrieve(state: State):
        docs = finding("The crossing takes 55 minutes.", "The harbour has a café.")
        return {"documents": docs.invoke(state["question"]), "attempts": 0}

    def grade_documents(state: State):
        kept = [
            doc
            for doc in state["documents"]
            if grader.invoke(f"{doc.page_content}\n{state['question']}").binary_score == "yes"
        ]
        return {"documents": kept}

    def generate(state: State):
        chain = PROMPT | writer | StrOutputParser()
        asked = {"context": joined(state["documents"]), "question": state["question"]}
        return {"generation": chain.invoke(asked), "attempts": state["attempts"] + 1}

    def check(state: State) -> Literal["generate", "__end__"]:
        asked = f"Facts: {joined(state['documents'])}\nAnswer: {state['generation']}"
        return END if grader.invoke(asked).binary_score == "yes" else "generate"

    builder = StateGraph(State)
    for node in (retrieve, grade_documents, generate):
        builder.add_node(node)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "grade_documents")
    builder.add_edge("grade_documents", "generate")
    builder.add_conditional_edges("generate", check)
    builder.compile().invoke({"question": "How long does the ferry take?"}, config)


@app(
    "agentic RAG that rewrites the question",
    question="jam sugar?",
    answer="Use one kilogram of sugar for each kilogram of fruit.",
    chunks=["Classic jam needs equal weights of sugar and fruit."],
    absent=["How much sugar does jam need?", "Marmalade comes from Portugal."],
)
def agentic(config):
    texts = [
        ["Marmalade comes from Portugal."],
        ["Classic jam needs equal weights of sugar and fruit."],
    ]

    def search(query: str) -> str:
        """Search recipes."""
        return "\n".join(texts.pop(0))

    model = chat(
        calling("search", query="jam sugar"),
        calling("search", query="sugar for jam"),
        "never said",
    )

    def query_or_respond(state: MessagesState):
        return {"messages": [model.invoke(state["messages"])]}

    def grade(state: MessagesState) -> Literal["rewrite", "answer"]:
        asked = f"{state['messages'][-1].content}\n{state['messages'][0].content}"
        verdict = chat("no" if "Portugal" in asked else "yes").invoke(f"Relevant?\n{asked}")
        return "answer" if verdict.text == "yes" else "rewrite"

    def rewrite(state: MessagesState):
        made = chat("How much sugar does jam need?").invoke(
            f"Improve the question: {state['messages'][0].content}"
        )
        return {"messages": [HumanMessage(made.text)]}

    def answer(state: MessagesState):
        asked = f"Context: {state['messages'][-1].content}\n{state['messages'][0].content}"
        made = chat("Use one kilogram of sugar for each kilogram of fruit.").invoke(asked)
        return {"messages": [made]}

    builder = StateGraph(MessagesState)
    for node in (query_or_respond, rewrite, answer):
        builder.add_node(node)
    builder.add_node("retrieve", ToolNode([search]))
    builder.add_edge(START, "query_or_respond")
    builder.add_conditional_edges(
        "query_or_respond", tools_condition, {"tools": "retrieve", END: END}
    )
    builder.add_conditional_edges("retrieve", grade)
    builder.add_edge("rewrite", "query_or_respond")
    builder.add_edge("answer", END)
    builder.compile().invoke({"messages": [HumanMessage("jam sugar?")]}, config)


@app(
    "a subgraph with a state of its own",
    question="Wer leitet den Chor?",
    answer="Frau Adler leitet den Chor. Er probt dienstags.",
    chunks=["Der Chor wird von Frau Adler geleitet."],
    invented=["Er probt dienstags."],
)
def subgraph(config):
    class Inner(TypedDict, total=False):
        query: str
        passages: list[Document]

    def look_up(state: Inner):
        return {
            "passages": finding("Der Chor wird von Frau Adler geleitet.").invoke(state["query"])
        }

    inner = sequence(Inner, look_up).compile()

    def retrieve(state: State):
        return {"documents": inner.invoke({"query": state["question"]})["passages"]}

    def generate(state: State):
        chain = PROMPT | chat("Frau Adler leitet den Chor. Er probt dienstags.") | StrOutputParser()
        asked = {"context": joined(state["documents"]), "question": state["question"]}
        return {"generation": chain.invoke(asked)}

    sequence(State, retrieve, generate).compile().invoke(
        {"question": "Wer leitet den Chor?"}, config
    )


@app(
    "a compiled graph as a node, asynchronously",
    question="Which hall is the yoga class in?",
    answer="Yoga is in hall C.",
    chunks=["Hall C: yoga, Mondays at six"],
)
async def graph_as_a_node(config):
    async def retrieve(state: State):
        docs = await finding("Hall C: yoga, Mondays at six").ainvoke(state["question"])
        return {"documents": docs}

    async def generate(state: State):
        asked = f"{joined(state['documents'])}\n\n{state['question']}"
        return {"generation": (await chat("Yoga is in hall C.").ainvoke(asked)).text}

    builder = StateGraph(State)
    builder.add_node("rag", sequence(State, retrieve, generate).compile())
    builder.add_edge(START, "rag")
    await builder.compile().ainvoke({"question": "Which hall is the yoga class in?"}, config)


@app(
    "a workflow of tasks",
    question="Which toner does the printer need?",
    answer="It needs toner TN-243.",
    chunks=["Printer HL-L3270 uses toner TN-243."],
)
async def workflow(config):
    @task
    async def search(question):
        return await finding("Printer HL-L3270 uses toner TN-243.").ainvoke(question)

    @task
    async def reply(question, docs):
        asked = [SystemMessage(joined(docs)), HumanMessage(question)]
        return (await chat("It needs toner TN-243.").ainvoke(asked)).text

    @entrypoint()
    async def answer(given):
        docs = await search(given["question"])
        return {"answer": await reply(given["question"], docs)}

    await answer.ainvoke({"question": "Which toner does the printer need?"}, config)


@app(
    "a person's correction after an interrupt",
    question="Cancel my order 88.",
    answer="Order 88 is cancelled; 59 EUR will be paid back.",
    chunks=["order 88: cancelled, refund 59 EUR"],
    cases=1,
)
def approved(config):
    def cancel(order: int) -> str:
        """Cancel an order."""
        if interrupt(f"Cancel order {order}?") != "yes":
            return "not cancelled"
        return f"order {order}: cancelled, refund 59 EUR"

    agent = create_agent(
        chat(calling("cancel", order=88), "Order 88 is cancelled; 59 EUR will be paid back."),
        [cancel],
        checkpointer=InMemorySaver(),
    )
    config = {**config, "configurable": {"thread_id": "t-88"}}
    agent.invoke({"messages": [HumanMessage("Cancel my order 88.")]}, config)
    agent.invoke(Command(resume="yes"), config)


@app(
    "a fan-out to three sources that a reducer collects",
    question="What is known about the castle?",
    answer="It stands on a rock, was besieged in 1525 and is a youth hostel today.",
    chunks=["The castle stands on a rock.", "In 1525 it was besieged.", "It is a youth hostel."],
)
def fan_out(config):
    class Wide(TypedDict, total=False):
        question: str
        context: Annotated[list[Document], operator.add]
        answer: str

    def source(text):
        return lambda state: {"context": finding(text).invoke(state["question"])}

    def answer(state: Wide):
        ordered = sorted(state["context"], key=lambda doc: doc.page_content, reverse=True)
        reply = "It stands on a rock, was besieged in 1525 and is a youth hostel today."
        return {"answer": chat(reply).invoke(f"{joined(ordered)}\n\n{state['question']}").text}

    builder = StateGraph(Wide)
    builder.add_node("geology", source("The castle stands on a rock."))
    builder.add_node("history", source("In 1525 it was besieged."))
    builder.add_node("today", source("It is a youth hostel."))
    builder.add_node("answer", answer)
    for name in ("geology", "history", "today"):
        builder.add_edge(START, name)
    builder.add_edge(["geology", "history", "today"], "answer")
    builder.compile().invoke({"question": "What is known about the castle?"}, config)


@app(
    "documents as dictionaries in the state",
    question="Who may use the workshop?",
    answer="Members over 16 may use the workshop.",
    prompt=["The workshop is for members over the age of 16."],
)
def documents_as_dictionaries(config):
    class Plain(TypedDict, total=False):
        question: str
        passages: list[dict]
        answer: str

    texts = store("The workshop is for members over the age of 16.")

    def retrieve(state: Plain):
        hits = texts.similarity_search_with_score(state["question"], k=1)
        return {"passages": [{"content": doc.page_content, "score": score} for doc, score in hits]}

    def answer(state: Plain):
        shown = "\n".join(f"({hit['score']:.2f}) {hit['content']}" for hit in state["passages"])
        reply = chat("Members over 16 may use the workshop.")
        return {"answer": reply.invoke(f"{shown}\n\n{state['question']}").text}

    sequence(Plain, retrieve, answer).compile().invoke(
        {"question": "Who may use the workshop?"}, config
    )


@app(
    "a router that answers small talk itself and searches otherwise",
    question="Is the fireplace free tonight?",
    answer="Yes, the fireplace is free tonight.",
    chunks=["Fireplace room: free on Friday night"],
)
def adaptive(config):
    def route(state: State) -> Literal["retrieve", "small_talk"]:
        made = chat("retrieve").invoke(f"Datasource for: {state['question']}")
        return made.text

    def retrieve(state: State):
        return {
            "documents": finding("Fireplace room: free on Friday night").invoke(state["question"])
        }

    def small_talk(state: State):
        return {"generation": chat("Hello!").invoke(state["question"]).text}

    def generate(state: State):
        chain = PROMPT | chat("Yes, the fireplace is free tonight.") | StrOutputParser()
        asked = {"context": joined(state["documents"]), "question": state["question"]}
        return {"generation": chain.invoke(asked)}

    builder = StateGraph(State)
    for node in (retrieve, small_talk, generate):
        builder.add_node(node)
    builder.add_conditional_edges(START, route)
    builder.add_edge("retrieve", "generate")
    builder.compile().invoke({"question": "Is the fireplace free tonight?"}, config)


@app(
    "tool messages that a node writes itself",
    question="What is the code of the bike lock?",
    answer="The code is 4711. Change it every month.",
    chunks=["Bike lock: code 4711"],
    invented=["Change it every month."],
)
def own_tool_messages(config):
    model = chat(calling("vault", item="bike lock"), "The code is 4711. Change it every month.")

    def call_model(state: MessagesState):
        return {"messages": [model.invoke(state["messages"])]}

    def call_tool(state: MessagesState):
        (call,) = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage("Bike lock: code 4711", tool_call_id=call["id"])]}

    builder = StateGraph(MessagesState)
    builder.add_node(call_model)
    builder.add_node(call_tool)
    builder.add_edge(START, "call_model")
    builder.add_conditional_edges(
        "call_model",
        lambda state: "call_tool" if state["messages"][-1].tool_calls else END,
    )
    builder.add_edge("call_tool", "call_model")
    builder.compile().invoke({"messages": [("user", "What is the code of the bike lock?")]}, config)


@app(
    "a graph with a Pydantic state and a private channel",
    question="How many eggs are in the coop?",
    answer="There are eleven eggs in the coop.",
    chunks=["Coop count this morning: 11 eggs"],
)
def private_channel(config):
    class Asked(BaseModel):
        question: str

    class Whole(BaseModel):
        question: str
        answer: str = ""

    class Private(TypedDict):
        found: list[Document]

    class Answered(BaseModel):
        answer: str

    def retrieve(state: Asked) -> Private:
        return {"found": finding("Coop count this morning: 11 eggs").invoke(state.question)}

    def answer(state: Private) -> Answered:
        asked = f"{joined(state['found'])}\n\nHow many eggs are in the coop?"
        return Answered(answer=chat("There are eleven eggs in the coop.").invoke(asked).text)

    builder = StateGraph(Whole, input_schema=Asked, output_schema=Answered)
    builder.add_node(retrieve)
    builder.add_node(answer)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "answer")
    builder.compile().invoke({"question": "How many eggs are in the coop?"}, config)


@app(
    "a search that is tried again with a wider filter",
    question="Which plumber works on Sundays?",
    answer="Plumber Weiss works on Sundays.",
    chunks=["Weiss, plumber: emergency service on Sundays"],
)
async def tried_again(config):
    async def retrieve(state: State):
        attempts = state.get("attempts", 0)
        texts = ["Weiss, plumber: emergency service on Sundays"] if attempts else []
        docs = await finding(*texts).ainvoke(state["question"])
        return {"documents": docs, "attempts": attempts + 1}

    async def generate(state: State):
        asked = f"{joined(state['documents'])}\n\n{state['question']}"
        return {"generation": (await chat("Plumber Weiss works on Sundays.").ainvoke(asked)).text}

    builder = StateGraph(State)
    builder.add_node(retrieve)
    builder.add_node(generate)
    builder.add_edge(START, "retrieve")
    builder.add_conditional_edges(
        "retrieve", lambda state: "generate" if state["documents"] else "retrieve"
    )
    await builder.compile().ainvoke({"question": "Which plumber works on Sundays?"}, config)


@app(
    "an agent with a search tool and a fact in its prompt",
    question="Can I bring my violin on board?",
    answer="Yes: violins count as hand luggage, and you have priority boarding.",
    chunks=["Violins are accepted as hand luggage."],
    prompt=["Passenger: priority boarding, seat 4A"],
)
def fact_in_the_prompt(config):
    search = create_retriever_tool(
        finding("Violins are accepted as hand luggage."), "rules", "Looks up rules."
    )
    agent = create_agent(
        chat(
            calling("rules", query="violin"),
            "Yes: violins count as hand luggage, and you have priority boarding.",
        ),
        [search],
        system_prompt="You help passengers.\nPassenger: priority boarding, seat 4A",
    )
    list(
        agent.stream(
            {"messages": [("user", "Can I bring my violin on board?")]},
            config,
            stream_mode="values",
        )
    )

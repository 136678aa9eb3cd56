"""Applications that show many texts, tiny texts, triples, or texts in languages without spaces."""

from operator import itemgetter
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import Found, calling, chat, documents, finding, joined
from langgraph.graph import START, StateGraph

CITIES = [f"Station {n} measured {n * 7 % 50} millimetres of rain." for n in range(1, 151)]
COMMENTS = [f"Customer {n} rates the hotel with {n % 5 + 1} stars." for n in range(1, 151)]


class Reading(TypedDict, total=False):
    question: str
    comments: list[str]
    triples: list[tuple[str, str, str]]
    answer: str


def graph_of(*nodes):
    builder = StateGraph(Reading)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    return builder.compile()


@app(
    "a retriever that finds 150 passages",
    question="How much rain did station 149 measure?",
    answer="Station 149 measured 43 millimetres. It lies in a valley.",
    chunks=CITIES,
    invented=["It lies in a valley."],
)
def many_passages(config):
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    chain = (
        {"context": finding(*CITIES) | joined, "question": RunnablePassthrough()}
        | prompt
        | chat("Station 149 measured 43 millimetres. It lies in a valley.")
        | StrOutputParser()
    )
    chain.invoke("How much rain did station 149 measure?", config)


@app(
    "a list of 150 comments in the state",
    question="How does customer 150 rate the hotel?",
    answer="Customer 150 gives one star.",
    prompt=COMMENTS,
)
def many_comments(config):
    def load(state: Reading):
        return {"comments": COMMENTS}

    def answer(state: Reading):
        listed = "\n".join(f"- {each}" for each in state["comments"])
        asked = [SystemMessage(f"Comments:\n{listed}"), HumanMessage(state["question"])]
        return {"answer": chat("Customer 150 gives one star.").invoke(asked).content}

    graph_of(load, answer).invoke({"question": "How does customer 150 rate the hotel?"}, config)


@app(
    "a tool that lists 120 orders",
    question="Which of my orders is still open?",
    answer="Order 4119 is still open.",
    prompt=["4119;open", "4000;paid", "4118;paid"],
)
def many_orders(config):
    @tool
    def list_orders(customer: str) -> str:
        """All orders of a customer as CSV."""
        return "\n".join(f"{n};{'open' if n == 4119 else 'paid'}" for n in range(4000, 4120))

    model = chat(calling("list_orders", customer="C-9"), "Order 4119 is still open.")
    create_agent(model, [list_orders]).invoke(
        {"messages": [("user", "Which of my orders is still open?")]}, config
    )


@app(
    "passages of two or three words",
    question="Which colours does the shirt come in?",
    answer="It comes in navy blue, olive and rust red.",
    chunks=["navy blue", "olive", "rust red"],
)
def tiny_passages(config):
    prompt = ChatPromptTemplate.from_template("Colours in stock: {context}\n{question}")
    chain = (
        RunnablePassthrough.assign(
            context=itemgetter("question")
            | finding("navy blue", "olive", "rust red")
            | (lambda docs: ", ".join(doc.page_content for doc in docs))
        )
        | prompt
        | chat("It comes in navy blue, olive and rust red.")
    )
    chain.invoke({"question": "Which colours does the shirt come in?"}, config)


@app(
    "short texts that a function gives",
    question="Welche Zutaten brauche ich?",
    answer="Du brauchst Mehl, vier Eier und Hefe.",
    prompt=["500 g Mehl", "4 Eier", "1 Würfel Hefe"],
)
async def short_texts(config):
    async def ingredients(_):
        return ["500 g Mehl", "4 Eier", "1 Würfel Hefe"]

    prompt = ChatPromptTemplate.from_messages(
        [("system", "Zutaten: {zutaten}"), ("human", "{frage}")]
    )
    chain = (
        RunnablePassthrough.assign(zutaten=RunnableLambda(ingredients))
        | prompt
        | chat("Du brauchst Mehl, vier Eier und Hefe.")
        | StrOutputParser()
    )
    async for _ in chain.astream({"frage": "Welche Zutaten brauche ich?"}, config):
        pass


@app(
    "a tool that answers with one word",
    question="Is the heating on?",
    answer="No, the heating is off.",
    chunks=["off"],
)
def one_word_of_a_tool(config):
    @tool
    def heating_state(room: str) -> str:
        """State of the heating."""
        return "off"

    model = chat(calling("heating_state", room="kitchen"), "No, the heating is off.")
    create_agent(model, [heating_state]).invoke(
        {"messages": [("user", "Is the heating on?")]}, config
    )


@app(
    "a tool that answers with a number",
    question="How many seats are left on the 8:15 to Turin?",
    answer="There are 17 seats left on the 8:15 to Turin.",
    chunks=["17"],
)
async def number_of_a_tool(config):
    @tool
    async def seats_left(train: str) -> int:
        """Seats that can still be booked."""
        return 17

    model = chat(
        calling("seats_left", train="8:15 Turin"), "There are 17 seats left on the 8:15 to Turin."
    )
    agent = create_agent(model, [seats_left])
    asked = {"messages": [("user", "How many seats are left on the 8:15 to Turin?")]}
    await agent.ainvoke(asked, config)


@app(
    "triples of a knowledge graph in the state",
    question="Who owns the company that makes the Aurora?",
    answer="The Aurora is made by Lumen, which belongs to Sol Holding. Sol was founded in 1998.",
    prompt=["Aurora made_by Lumen", "Lumen owned_by Sol Holding"],
    invented=["Sol was founded in 1998."],
)
def triples(config):
    def walk(state: Reading):
        return {"triples": [("Aurora", "made_by", "Lumen"), ("Lumen", "owned_by", "Sol Holding")]}

    def answer(state: Reading):
        facts = "\n".join(" ".join(triple) for triple in state["triples"])
        reply = chat(
            "The Aurora is made by Lumen, which belongs to Sol Holding. Sol was founded in 1998."
        ).invoke(f"Facts:\n{facts}\n\n{state['question']}")
        return {"answer": reply.content}

    graph_of(walk, answer).invoke(
        {"question": "Who owns the company that makes the Aurora?"}, config
    )


@app(
    "triples with arrows beside documents",
    question="What does aspirin interact with?",
    answer="Aspirin interacts with warfarin.",
    chunks=["Aspirin is a common pain killer."],
    prompt=["aspirin -[INTERACTS_WITH]-> warfarin"],
)
def arrows(config):
    prompt = ChatPromptTemplate.from_template(
        "Graph:\n{graph}\n\nTexts:\n{texts}\n\nQuestion: {question}"
    )
    chain = (
        {
            "graph": lambda _: "aspirin -[INTERACTS_WITH]-> warfarin",
            "texts": finding("Aspirin is a common pain killer.") | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("Aspirin interacts with warfarin.")
        | StrOutputParser()
    )
    chain.invoke("What does aspirin interact with?", config)


@app(
    "Chinese passages",
    question="退款需要多长时间？",
    answer="退款需要五个工作日。",
    chunks=["退款在收到退货后五个工作日内完成。", "运费不予退还。"],
)
def chinese(config):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "根据以下资料回答问题：\n{context}"), ("human", "{question}")]
    )
    chain = (
        {
            "context": finding("退款在收到退货后五个工作日内完成。", "运费不予退还。") | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("退款需要五个工作日。")
        | StrOutputParser()
    )
    chain.invoke("退款需要多长时间？", config)


@app(
    "a Chinese prompt variable of a few characters",
    question="我的会员等级可以免运费吗？",
    answer="可以，金卡会员免运费。保价也免费。",
    chunks=["金卡和白金卡会员免运费。"],
    prompt=["金卡"],
    invented=["保价也免费。"],
)
def chinese_variable(config):
    prompt = ChatPromptTemplate.from_template(
        "资料：{context}\n会员等级：{level}\n问题：{question}"
    )
    chain = (
        RunnablePassthrough.assign(
            context=itemgetter("question") | finding("金卡和白金卡会员免运费。") | joined,
            level=lambda _: "金卡",
        )
        | prompt
        | chat("可以，金卡会员免运费。保价也免费。")
    )
    chain.invoke({"question": "我的会员等级可以免运费吗？"}, config)


@app(
    "a Japanese agent with a search tool",
    question="図書館は何時に閉まりますか？",
    answer="平日は午後八時に閉まります。",
    chunks=["平日の開館時間は午前九時から午後八時までです。", "月曜日は休館日です。"],
    absent=["図書館 開館時間"],
)
def japanese(config):
    search = create_retriever_tool(
        finding("平日の開館時間は午前九時から午後八時までです。", "月曜日は休館日です。"),
        "kensaku",
        "検索します。",
    )
    model = chat(calling("kensaku", query="図書館 開館時間"), "平日は午後八時に閉まります。")
    create_agent(model, [search]).invoke(
        {"messages": [HumanMessage("図書館は何時に閉まりますか？")]}, config
    )


@app(
    "one very long document",
    question="What does clause 800 forbid?",
    answer="Clause 800 forbids subletting item 800.",
    chunks=[f"Clause {n} forbids subletting item {n}." for n in (1, 400, 800)],
)
def long_document(config):
    text = " ".join(f"Clause {n} forbids subletting item {n}." for n in range(1, 801))
    prompt = ChatPromptTemplate.from_template("<contract>\n{contract}\n</contract>\n{question}")
    chain = (
        {
            "contract": Found(documents=[Document(text)]) | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("Clause 800 forbids subletting item 800.")
        | StrOutputParser()
    )
    chain.invoke("What does clause 800 forbid?", config)


@app(
    "two documents with nearly the same words",
    question="Which entrance is open at night?",
    answer="The north entrance is open at night.",
    chunks=["The north entrance is open at night.", "The south entrance is open at noon."],
    absent=["The east entrance is open at night."],
)
def similar_documents(config):
    found = documents(
        "The north entrance is open at night.",
        "The south entrance is open at noon.",
        "The east entrance is open at night.",
    )
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    chain = (
        {
            "context": Found(documents=found) | (lambda docs: docs[:2]) | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("The north entrance is open at night.")
    )
    chain.invoke("Which entrance is open at night?", config)

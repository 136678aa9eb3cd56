"""Everyday applications, none of them chosen to be hard."""

import asyncio
from operator import itemgetter
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import tool
from langchain_fakes import Found, calling, calling_all, chat, documents, finding, joined, store
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

RAG = ChatPromptTemplate.from_template(
    "You are an assistant for question-answering tasks. Use the following pieces of retrieved "
    "context to answer the question. If you don't know the answer, say that you don't know.\n"
    "Question: {question}\nContext: {context}\nAnswer:"
)


@app(
    "the tutorial's graph of retrieve and generate",
    question="What is task decomposition?",
    answer="It splits a hard task into smaller steps.",
    chunks=["Task decomposition turns big tasks into several small steps."],
)
def tutorial(config):
    class State(TypedDict):
        question: str
        context: list[Document]
        answer: str

    texts = store("Task decomposition turns big tasks into several small steps.")

    def retrieve(state: State):
        return {"context": texts.similarity_search(state["question"])}

    def generate(state: State):
        messages = RAG.invoke({"question": state["question"], "context": joined(state["context"])})
        response = chat("It splits a hard task into smaller steps.").invoke(messages)
        return {"answer": response.content}

    graph = StateGraph(State).add_sequence([retrieve, generate])
    graph.add_edge(START, "retrieve")
    graph.compile().invoke({"question": "What is task decomposition?"}, config)


@app(
    "the tutorial's retrieval tool with sources and metadata",
    question="What does the post say about memory?",
    answer="Short-term memory is in-context learning. Long-term memory is a diary.",
    chunks=["Short-term memory: all in-context learning uses it."],
    prompt=["post.html"],
    invented=["Long-term memory is a diary."],
)
def tutorial_tool(config):
    texts = [
        Document(
            "Short-term memory: all in-context learning uses it.", metadata={"source": "post.html"}
        )
    ]

    @tool(response_format="content_and_artifact")
    def retrieve(query: str):
        """Retrieve information related to a query."""
        docs = Found(documents=texts).invoke(query)
        serialized = "\n\n".join(f"Source: {d.metadata}\nContent: {d.page_content}" for d in docs)
        return serialized, docs

    model = chat(
        calling("retrieve", query="memory"),
        "Short-term memory is in-context learning. Long-term memory is a diary.",
    )

    def query_or_respond(state: MessagesState):
        return {"messages": [model.invoke(state["messages"])]}

    def generate(state: MessagesState):
        tools = [m for m in state["messages"] if m.type == "tool"]
        system = "Use this context.\n\n" + "\n\n".join(m.content for m in tools)
        asked = [m for m in state["messages"] if m.type in {"human", "system"}]
        return {"messages": [model.invoke([("system", system), *asked])]}

    graph = StateGraph(MessagesState)
    graph.add_node(query_or_respond)
    graph.add_node("tools", ToolNode([retrieve]))
    graph.add_node(generate)
    graph.set_entry_point("query_or_respond")
    graph.add_conditional_edges("query_or_respond", tools_condition, {END: END, "tools": "tools"})
    graph.add_edge("tools", "generate")
    for _ in graph.compile().stream(
        {"messages": [{"role": "user", "content": "What does the post say about memory?"}]},
        config,
        stream_mode="values",
    ):
        pass


@app(
    "a support bot with a checkpointer that needs no tool in its second turn",
    question="Thanks! And is it free?",
    answer="Yes, returns are free.",
    prompt=["Returns are free within 30 days."],
    absent=["You can send it back within 30 days."],
    cases=2,
)
def no_tool_in_the_second_turn(config):
    @tool
    def policy(topic: str) -> str:
        """Look up the policy."""
        return "Returns are free within 30 days."

    agent = create_agent(
        chat(
            calling("policy", topic="returns"),
            "You can send it back within 30 days.",
            "Yes, returns are free.",
        ),
        [policy],
        checkpointer=InMemorySaver(),
    )
    config = {**config, "configurable": {"thread_id": "42"}}
    agent.invoke({"messages": [("user", "Can I return the kettle?")]}, config)
    agent.invoke({"messages": [("user", "Thanks! And is it free?")]}, config)


@app(
    "a bot for a small shop with its facts in the system prompt",
    question="Do you deliver on Sundays?",
    answer="No, we deliver from Monday to Saturday.",
    prompt=["Delivery: Monday to Saturday, 8 to 18", "Phone: 030 1234"],
)
def facts_in_the_system_prompt(config):
    facts = "Delivery: Monday to Saturday, 8 to 18\nPhone: 030 1234"
    agent = create_agent(
        chat("No, we deliver from Monday to Saturday."),
        [],
        system_prompt=f"You are the assistant of a shop.\n\n{facts}",
    )
    agent.invoke({"messages": [("user", "Do you deliver on Sundays?")]}, config)


@app(
    "a chat over documents with a history",
    question="Und für Kinder?",
    answer="Kinder unter sechs fahren kostenlos.",
    chunks=["Kinder unter sechs Jahren fahren kostenlos.", "Erwachsene zahlen 2,80 Euro."],
    absent=["Was kostet die Fahrt für Kinder?", "Zwei Euro achtzig für Erwachsene."],
)
async def chat_over_documents(config):
    rewrite = ChatPromptTemplate.from_messages(
        [("system", "Formuliere um."), MessagesPlaceholder("chat_history"), ("human", "{input}")]
    )
    answer = ChatPromptTemplate.from_messages(
        [("system", "{context}"), MessagesPlaceholder("chat_history"), ("human", "{input}")]
    )
    retriever = create_history_aware_retriever(
        chat("Was kostet die Fahrt für Kinder?"),
        finding("Kinder unter sechs Jahren fahren kostenlos.", "Erwachsene zahlen 2,80 Euro."),
        rewrite,
    )
    stuff = create_stuff_documents_chain(chat("Kinder unter sechs fahren kostenlos."), answer)
    history = [
        HumanMessage("Was kostet die Fahrt?"),
        AIMessage("Zwei Euro achtzig für Erwachsene."),
    ]
    async for _ in create_retrieval_chain(retriever, stuff).astream(
        {"input": "Und für Kinder?", "chat_history": history}, config
    ):
        pass


@app(
    "documents returned beside the answer",
    question="Who founded the club?",
    answer="Lena Roth founded the club in 1921.",
    chunks=["The club was founded by Lena Roth in 1921.", "It has 400 members."],
)
def with_sources(config):
    answer = (
        RunnablePassthrough.assign(context=lambda given: joined(given["context"]))
        | RAG
        | chat("Lena Roth founded the club in 1921.")
        | StrOutputParser()
    )
    RunnableParallel(
        {
            "context": finding("The club was founded by Lena Roth in 1921.", "It has 400 members."),
            "question": RunnablePassthrough(),
        }
    ).assign(answer=answer).invoke("Who founded the club?", config)


@app(
    "a weather and a calendar tool at once",
    question="Should I cycle to my meeting tomorrow?",
    answer="Rather not: it rains at nine, when your meeting is. Take bus 12.",
    chunks=["rain from 8 to 11", "09:00 budget meeting, town hall"],
    invented=["Take bus 12."],
)
async def weather_and_calendar(config):
    @tool
    async def forecast(day: str) -> str:
        """The weather."""
        await asyncio.sleep(0.01)
        return "rain from 8 to 11"

    @tool
    async def calendar(day: str) -> str:
        """The calendar."""
        return "09:00 budget meeting, town hall"

    model = chat(
        calling_all(("forecast", {"day": "tomorrow"}), ("calendar", {"day": "tomorrow"})),
        "Rather not: it rains at nine, when your meeting is. Take bus 12.",
    )
    agent = create_agent(model, [forecast, calendar], system_prompt="You are a helpful assistant.")
    asked = {"messages": [{"role": "user", "content": "Should I cycle to my meeting tomorrow?"}]}
    await agent.ainvoke(asked, config)


@app(
    "numbered passages with titles and pages",
    question="How long may the report be?",
    answer="The report may have twenty pages [1].",
    chunks=["Reports have at most twenty pages.", "Annexes do not count."],
    prompt=["Handbook, p. 12"],
)
def numbered(config):
    docs = [
        Document("Reports have at most twenty pages.", metadata={"title": "Handbook", "page": 12}),
        Document("Annexes do not count.", metadata={"title": "Handbook", "page": 13}),
    ]

    def numbered_list(found):
        return "\n\n".join(
            f"[{n}] {d.metadata['title']}, p. {d.metadata['page']}\n{d.page_content}"
            for n, d in enumerate(found, 1)
        )

    chain = (
        {"context": Found(documents=docs) | numbered_list, "question": RunnablePassthrough()}
        | RAG
        | chat("The report may have twenty pages [1].")
        | StrOutputParser()
    )
    chain.invoke("How long may the report be?", config)


@app(
    "a user's name and plan beside the documents",
    question="How many seats do I have left?",
    answer="You have 3 seats left on the Team plan.",
    chunks=["The Team plan has 10 seats."],
    prompt=["used seats: 7"],
)
def plan_of_the_user(config):
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Answer from the docs.\n<docs>\n{docs}\n</docs>\nAccount: {account}"),
            ("user", "{question}"),
        ]
    )
    chain = (
        RunnablePassthrough.assign(
            docs=itemgetter("question") | finding("The Team plan has 10 seats.") | joined
        )
        | prompt
        | chat("You have 3 seats left on the Team plan.")
        | StrOutputParser()
    )
    chain.invoke(
        {"question": "How many seats do I have left?", "account": "Mona, used seats: 7"}, config
    )


@app(
    "an agent that searches twice for a comparison",
    question="Which is older, the cathedral or the bridge?",
    answer="The bridge is older: 1150 against 1225.",
    chunks=["The cathedral was begun in 1225.", "The bridge was finished in 1150."],
    absent=["age of the cathedral", "age of the bridge"],
)
def comparison(config):
    texts = {
        "age of the cathedral": "The cathedral was begun in 1225.",
        "age of the bridge": "The bridge was finished in 1150.",
    }

    @tool
    def search(query: str) -> str:
        """Search."""
        return joined(finding(texts[query]).invoke(query))

    model = chat(
        calling("search", query="age of the cathedral", said="First the cathedral."),
        calling("search", query="age of the bridge"),
        "The bridge is older: 1150 against 1225.",
    )
    create_agent(model, [search]).invoke(
        {"messages": [("user", "Which is older, the cathedral or the bridge?")]}, config
    )


@app(
    "a retriever whose documents were deduplicated and cut to three",
    question="How do I reset my password?",
    answer="Open the settings and choose Reset.",
    chunks=["Settings, then Reset.", "A link comes by mail.", "It is valid for an hour."],
    absent=["Passwords are hashed."],
)
def cut_to_three(config):
    def unique(docs):
        return list({doc.page_content: doc for doc in docs}.values())[:3]

    found = documents(
        "Settings, then Reset.",
        "Settings, then Reset.",
        "A link comes by mail.",
        "It is valid for an hour.",
        "Passwords are hashed.",
    )
    chain = (
        {"context": Found(documents=found) | unique | joined, "question": RunnablePassthrough()}
        | RAG
        | chat("Open the settings and choose Reset.")
        | StrOutputParser()
    )
    chain.invoke("How do I reset my password?", config)


@app(
    "an order that a function looks up in the request",
    question="Where is my order?",
    answer="Order 815 left Lyon this morning.",
    prompt=["order 815: left Lyon 06:40"],
)
def order_in_the_request(config):
    orders = {815: "order 815: left Lyon 06:40"}

    def handle(request):
        status = orders[request["order_id"]]
        messages = [
            ("system", f"You answer questions about orders. Status: {status}"),
            ("human", request["question"]),
        ]
        return chat("Order 815 left Lyon this morning.").invoke(messages).content

    RunnableLambda(handle).invoke({"order_id": 815, "question": "Where is my order?"}, config)

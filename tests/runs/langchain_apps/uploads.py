"""Applications that answer from whole documents which the caller gives: "ask your PDF"."""

import base64
from operator import itemgetter
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_fakes import calling, chat, documents, finding
from langchain_text_splitters import RecursiveCharacterTextSplitter
from langgraph.graph import START, MessagesState, StateGraph

DEPOSIT = "The deposit is two months' rent and is returned six months after the tenant moves out."
LEASE = f"The rent is due on the third working day of each month.\n\n{DEPOSIT}"


@app(
    "a text under pdf_text",
    question="When do I get my deposit back?",
    answer="Six months after you move out. It bears interest of two per cent.",
    prompt=[DEPOSIT],
    invented=["It bears interest of two per cent."],
)
def pdf_text(config):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer questions about this PDF:\n\n{pdf_text}"), ("human", "{question}")]
    )
    model = chat("Six months after you move out. It bears interest of two per cent.")
    chain = prompt | model | StrOutputParser()
    chain.invoke({"pdf_text": LEASE, "question": "When do I get my deposit back?"}, config)


@app(
    "pages of a file under pages",
    question="Wie hoch war der Umsatz?",
    answer="Der Umsatz betrug 4,2 Millionen Euro.",
    chunks=["Seite 1: Der Umsatz betrug 4,2 Millionen Euro.", "Seite 2: Es gab 31 Mitarbeiter."],
)
def pages(config):
    prompt = ChatPromptTemplate.from_template("Bericht:\n{pages}\n\nFrage: {question}")
    chain = create_stuff_documents_chain(
        chat("Der Umsatz betrug 4,2 Millionen Euro."), prompt, document_variable_name="pages"
    )
    given = documents(
        "Seite 1: Der Umsatz betrug 4,2 Millionen Euro.", "Seite 2: Es gab 31 Mitarbeiter."
    )
    chain.invoke({"pages": given, "question": "Wie hoch war der Umsatz?"}, config)


@app(
    "a dictionary from file names to texts",
    question="Which port does the service listen on?",
    answer="It listens on port 8443.",
    prompt=["port: 8443", "The service needs a certificate."],
)
def files_by_name(config):
    prompt = ChatPromptTemplate.from_template("Files:\n{context}\n\nQuestion: {question}")
    chain = (
        RunnablePassthrough.assign(
            context=lambda given: "\n".join(
                f"== {name}\n{text}" for name, text in given["context"].items()
            )
        )
        | prompt
        | chat("It listens on port 8443.")
        | StrOutputParser()
    )
    files = {"config.yaml": "host: ::\nport: 8443", "README.md": "The service needs a certificate."}
    chain.invoke({"context": files, "question": "Which port does the service listen on?"}, config)


@app(
    "an uploaded file in the same message as the question",
    question="Is the invoice already due?",
    answer="Yes, the invoice was due on 1 March.",
    prompt=["Invoice 771, payable until 1 March, total 412.50 EUR"],
)
def file_in_the_message(config):
    agent = create_agent(chat("Yes, the invoice was due on 1 March."), [])
    message = HumanMessage(
        [
            {"type": "text", "text": "Is the invoice already due?"},
            {
                "type": "text-plain",
                "text": "Invoice 771, payable until 1 March, total 412.50 EUR",
                "mime_type": "text/plain",
                "title": "invoice.txt",
            },
        ]
    )
    agent.invoke({"messages": [message]}, config)


@app(
    "a file block with data beside the question",
    question="Resume el informe en una frase.",
    answer="El proyecto terminó a tiempo.",
    chunks=[],
)
def file_as_data(config):
    data = base64.b64encode(b"%PDF-1.7 informe").decode()
    message = HumanMessage(
        [
            {"type": "file", "base64": data, "mime_type": "application/pdf"},
            {"type": "text", "text": "Resume el informe en una frase."},
        ]
    )
    create_agent(chat("El proyecto terminó a tiempo."), []).invoke({"messages": [message]}, config)


@app(
    "a document in a system message before the question",
    question="Who chairs the meeting?",
    answer="Ms Okafor chairs the meeting.",
    prompt=["Chair: Ms Okafor. Minutes: Mr Lind."],
)
async def document_before_the_question(config):
    def node(state: MessagesState):
        return {"messages": [chat("Ms Okafor chairs the meeting.").invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", node)
    graph.add_edge(START, "answer")
    messages = [
        SystemMessage("Agenda:\nChair: Ms Okafor. Minutes: Mr Lind."),
        HumanMessage("Who chairs the meeting?"),
    ]
    await graph.compile().ainvoke({"messages": messages}, config)


@app(
    "an upload that is split, indexed and searched in the run",
    question="What is the penalty for late delivery?",
    answer="The penalty is one per cent for each week.",
    chunks=["Late delivery costs one per cent of the price for each week."],
    absent=["Payment is made in three parts."],
)
def split_and_searched(config):
    class State(TypedDict, total=False):
        question: str
        upload: str
        chunks: list[Document]
        answer: str

    def split(state: State):
        splitter = RecursiveCharacterTextSplitter(chunk_size=70, chunk_overlap=0)
        return {"chunks": splitter.create_documents([state["upload"]])}

    def pick(state: State):
        return {"chunks": [doc for doc in state["chunks"] if "delivery" in doc.page_content]}

    def answer(state: State):
        context = "\n".join(doc.page_content for doc in state["chunks"])
        reply = chat("The penalty is one per cent for each week.").invoke(
            f"{context}\n\n{state['question']}"
        )
        return {"answer": reply.content}

    graph = StateGraph(State)
    graph.add_sequence([split, pick, answer])
    graph.add_edge(START, "split")
    upload = (
        "Payment is made in three parts.\n\n"
        "Late delivery costs one per cent of the price for each week."
    )
    graph.compile().invoke(
        {"question": "What is the penalty for late delivery?", "upload": upload}, config
    )


@app(
    "a summary of an article in the input",
    question="Summarise the article.",
    answer="Beavers have returned to the river and slow down floods.",
    prompt=[
        "Beavers were seen on the river again for the first time since 1880.",
        "Their dams hold back water after heavy rain.",
    ],
)
def summary(config):
    article = (
        "Beavers were seen on the river again for the first time since 1880. "
        "Their dams hold back water after heavy rain."
    )
    prompt = ChatPromptTemplate.from_messages([("system", "{article}"), ("human", "{instruction}")])
    model = chat("Beavers have returned to the river and slow down floods.")
    (prompt | model | StrOutputParser()).invoke(
        {"article": article, "instruction": "Summarise the article."}, config
    )


@app(
    "a transcript under a key beside the chat",
    question="What did we decide about the budget?",
    answer="You decided to keep the budget at 40,000 EUR.",
    prompt=["Lea: then we keep it at 40,000 EUR. Tom: agreed."],
)
def transcript(config):
    class Meeting(MessagesState):
        transcript: str

    def reply(state: Meeting):
        system = SystemMessage(f"Transcript of the meeting:\n{state['transcript']}")
        model = chat("You decided to keep the budget at 40,000 EUR.")
        return {"messages": [model.invoke([system, *state["messages"]])]}

    graph = StateGraph(Meeting)
    graph.add_node("reply", reply)
    graph.add_edge(START, "reply")
    asked = {
        "messages": [("user", "What did we decide about the budget?")],
        "transcript": "Lea: then we keep it at 40,000 EUR. Tom: agreed.",
    }
    list(graph.compile().stream(asked, config))


@app(
    "a file that a tool reads from the state's attachments",
    question="What is the serial number of my router?",
    answer="The serial number is RX-2201-77.",
    chunks=["Model RX, serial number RX-2201-77, made in 2022"],
)
def read_by_a_tool(config):
    attachments = {"label.txt": "Model RX, serial number RX-2201-77, made in 2022"}

    @tool
    def read_attachment(name: str) -> str:
        """Read a file that the user attached."""
        return attachments[name]

    model = chat(calling("read_attachment", name="label.txt"), "The serial number is RX-2201-77.")
    create_agent(model, [read_attachment]).invoke(
        {"messages": [("user", "What is the serial number of my router?")]}, config
    )


@app(
    "two contracts to compare",
    question="Which contract has the longer notice period?",
    answer="Contract B: six months instead of three. Both end in 2027.",
    prompt=["Notice: three months.", "Notice: six months."],
    invented=["Both end in 2027."],
)
def compared(config):
    def compare(given):
        asked = (
            f"Contract A:\n{given['contract_a']}\n\nContract B:\n{given['contract_b']}\n\n"
            f"{given['question']}"
        )
        reply = chat("Contract B: six months instead of three. Both end in 2027.")
        return {"answer": reply.invoke(asked).content}

    RunnableLambda(compare).invoke(
        {
            "contract_a": "Parties: Ott and Rau. Notice: three months.",
            "contract_b": "Parties: Ott and Behn. Notice: six months.",
            "question": "Which contract has the longer notice period?",
        },
        config,
    )


@app(
    "an uploaded file and a knowledge base",
    question="Does my warranty cover the broken hinge?",
    answer="Yes: you bought it in May 2025 and hinges are covered for two years.",
    chunks=["The warranty covers hinges for two years."],
    prompt=["Receipt: laptop, bought in May 2025"],
)
def file_and_base(config):
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Knowledge base:\n{context}"),
            ("human", "{upload}"),
            ("human", "{question}"),
        ]
    )
    chain = (
        RunnablePassthrough.assign(
            context=itemgetter("question")
            | finding("The warranty covers hinges for two years.")
            | (lambda docs: docs[0].page_content)
        )
        | prompt
        | chat("Yes: you bought it in May 2025 and hinges are covered for two years.")
    )
    asked = {
        "question": "Does my warranty cover the broken hinge?",
        "upload": "Receipt: laptop, bought in May 2025",
    }
    chain.invoke(asked, config)

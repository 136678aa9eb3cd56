"""Caches, fallbacks, files, services, code, tables, two answers."""

import asyncio
import json
import operator
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, TypedDict

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from harness import app
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import ModelRequest, dynamic_prompt
from langchain.agents.structured_output import ProviderStrategy
from langchain.tools import ToolRuntime
from langchain_classic.output_parsers import OutputFixingParser
from langchain_core.caches import InMemoryCache
from langchain_core.documents import Document
from langchain_core.example_selectors import SemanticSimilarityExampleSelector
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import (
    ChatPromptTemplate,
    FewShotPromptTemplate,
    MessagesPlaceholder,
    PromptTemplate,
)
from langchain_core.runnables import (
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    chain,
)
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_fakes import Hashed, Scripted, calling, calling_all, chat, finding, joined, store
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import BaseModel

PROMPT = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])


def ask(text):
    return {"messages": [HumanMessage(text)]}


def sources(*texts):
    return {"context": finding(*texts) | joined, "question": RunnablePassthrough()}


@app(
    "data of the runtime in an agent's prompt",
    question="Am I allowed to approve this invoice?",
    answer="Yes, you may approve invoices of up to 5,000 EUR.",
    chunks=["Team leads may approve invoices of up to 5,000 EUR."],
    prompt=["role: team lead"],
)
def runtime_context(config):
    @dataclass
    class User:
        role: str

    @dynamic_prompt
    def who(request: ModelRequest) -> str:
        return f"You help with invoices.\nrole: {request.runtime.context.role}"

    rules = create_retriever_tool(
        finding("Team leads may approve invoices of up to 5,000 EUR."), "rules", "Searches."
    )
    model = chat(
        calling("rules", query="approve"), "Yes, you may approve invoices of up to 5,000 EUR."
    )
    create_agent(model, [rules], middleware=[who], context_schema=User).invoke(
        ask("Am I allowed to approve this invoice?"), config, context=User(role="team lead")
    )


@app(
    "a tool that reads a store",
    question="Which seat do I prefer?",
    answer="You prefer a seat by the window.",
    chunks=["prefers: window seat, front of the train"],
)
def from_a_store(config):
    memory = InMemoryStore()
    memory.put(("users",), "u-1", {"text": "prefers: window seat, front of the train"})

    @tool
    def preferences(runtime: ToolRuntime) -> str:
        """What the user prefers."""
        return runtime.store.get(("users",), "u-1").value["text"]

    model = chat(calling("preferences"), "You prefer a seat by the window.")
    create_agent(model, [preferences], store=memory).invoke(ask("Which seat do I prefer?"), config)


class Files(AgentState):
    files: Annotated[dict, operator.or_]


@app(
    "a result that is put into a file and read in part",
    question="What does the log say about the outage?",
    answer="The outage began at 03:12 when the disk was full.",
    chunks=["03:12 disk full, database stopped"],
    absent=["04:40 backup finished"],
    allowed=["saved to /log.txt"],
)
def offloaded(config):
    @tool
    def fetch_log(runtime: ToolRuntime) -> Command:
        """Fetch the log into a file."""
        lines = "03:12 disk full, database stopped\n04:40 backup finished"
        message = ToolMessage("saved to /log.txt", tool_call_id=runtime.tool_call_id)
        return Command(update={"files": {"/log.txt": lines}, "messages": [message]})

    @tool
    def read_file(path: str, limit: int, runtime: ToolRuntime) -> str:
        """Read lines of a file."""
        return "\n".join(runtime.state["files"][path].splitlines()[:limit])

    model = chat(
        calling("fetch_log"),
        calling("read_file", path="/log.txt", limit=1),
        "The outage began at 03:12 when the disk was full.",
    )
    agent = create_agent(model, [fetch_log, read_file], state_schema=Files)
    agent.invoke({**ask("What does the log say about the outage?"), "files": {}}, config)


@app(
    "a page that a model sums up inside the tool",
    question="What is new in the park?",
    answer="There is a new playground with a climbing net.",
    prompt=["On Saturday the mayor opened a playground with a climbing net six metres high."],
    absent=["Summary: mayor opens climbing playground."],
)
async def summed_up(config):
    @tool
    async def read_page(url: str) -> str:
        """Read a page, in short."""
        page = "On Saturday the mayor opened a playground with a climbing net six metres high."
        made = await chat("Summary: mayor opens climbing playground.").ainvoke(f"Sum up:\n{page}")
        return made.text

    model = chat(
        calling("read_page", url="https://park.example"),
        "There is a new playground with a climbing net.",
    )
    await create_agent(model, [read_page]).ainvoke(ask("What is new in the park?"), config)


@app(
    "a reply that a second model mends",
    question="Which bus and when?",
    answer=["N4", "23:50"],
    chunks=["Night bus N4 leaves at 23:50."],
    absent=["bus is N4, leaving 23:50 or so"],
)
def mended(config):
    parser = OutputFixingParser.from_llm(
        parser=JsonOutputParser(), llm=chat('{"bus": "N4", "time": "23:50"}')
    )
    application = (
        sources("Night bus N4 leaves at 23:50.")
        | PROMPT
        | chat("bus is N4, leaving 23:50 or so {")
        | parser
    )
    application.invoke("Which bus and when?", config)


@app(
    "an answer that a guard rewrites without documents",
    question="Wie bekomme ich mein Geld zurück?",
    answer="Bitte füllen Sie das Formular aus; das Geld kommt in zehn Tagen.",
    chunks=["Mit dem Formular F2 wird das Geld binnen zehn Tagen erstattet."],
    absent=["Füll halt das Formular aus, dann kriegst du's in zehn Tagen."],
)
def rewritten_by_a_guard(config):
    rude = (
        sources("Mit dem Formular F2 wird das Geld binnen zehn Tagen erstattet.")
        | PROMPT
        | chat("Füll halt das Formular aus, dann kriegst du's in zehn Tagen.")
        | StrOutputParser()
    )
    polite = (
        ChatPromptTemplate.from_template("Sag es höflich: {text}")
        | chat("Bitte füllen Sie das Formular aus; das Geld kommt in zehn Tagen.")
        | StrOutputParser()
    )
    (rude | polite).invoke("Wie bekomme ich mein Geld zurück?", config)


@app(
    "a reply from a cache",
    question="What is the smallest parcel size?",
    answer="The smallest parcel is 15 by 11 centimetres.",
    chunks=["Parcels measure at least 15 by 11 centimetres."],
    cases=2,
)
def cached(config):
    model = Scripted(
        replies=["The smallest parcel is 15 by 11 centimetres.", "never said"],
        cache=InMemoryCache(),
    )
    application = (
        sources("Parcels measure at least 15 by 11 centimetres.")
        | PROMPT
        | model
        | StrOutputParser()
    )
    for _ in range(2):
        application.invoke("What is the smallest parcel size?", config)


@app(
    "a fallback to a model with a shorter prompt",
    question="Which lane is for bicycles?",
    answer="The green lane is for bicycles. Mopeds may use it.",
    chunks=["Green lane: bicycles only"],
    absent=["Grey lane: buses and taxis"],
    invented=["Mopeds may use it."],
)
def fallback(config):
    def too_long(messages):
        raise ValueError("maximum context length exceeded")

    docs = RunnablePassthrough.assign(
        docs=itemgetter("question")
        | finding("Green lane: bicycles only", "Grey lane: buses and taxis")
    )
    whole = RunnablePassthrough.assign(context=lambda given: joined(given["docs"])) | PROMPT
    first = RunnablePassthrough.assign(context=lambda given: joined(given["docs"][:1])) | PROMPT
    answering = (whole | chat(too_long)).with_fallbacks(
        [first | chat("The green lane is for bicycles. Mopeds may use it.")]
    )
    (docs | answering | StrOutputParser()).invoke(
        {"question": "Which lane is for bicycles?"}, config
    )


@app(
    "what was parsed beside the raw reply",
    question="Rate the hotel.",
    answer=["4", "Clean rooms, thin walls."],
    chunks=["Guests praise clean rooms and complain about thin walls."],
)
def raw_and_parsed(config):
    class Rating(BaseModel):
        stars: int
        reason: str

    called = calling("Rating", stars=4, reason="Clean rooms, thin walls.")
    application = (
        sources("Guests praise clean rooms and complain about thin walls.")
        | PROMPT
        | chat(called).with_structured_output(Rating, include_raw=True)
    )
    application.invoke("Rate the hotel.", config)


@app(
    "two answers of two lengths",
    question="Why is the road closed?",
    answer=["Landslide.", "A landslide has buried forty metres of the road."],
    chunks=["Since Monday a landslide covers forty metres of the road."],
)
def two_lengths(config):
    shown = RunnablePassthrough.assign(
        context=itemgetter("question")
        | finding("Since Monday a landslide covers forty metres of the road.")
        | joined
    )
    both = RunnableParallel(
        short=PROMPT | chat("Landslide.") | StrOutputParser(),
        long=PROMPT | chat("A landslide has buried forty metres of the road.") | StrOutputParser(),
    )
    (shown | both).invoke({"question": "Why is the road closed?"}, config)


@app(
    "documents that a model picks by number",
    question="Which paint is for bathrooms?",
    answer="Silicate paint suits bathrooms.",
    chunks=["Silicate paint lets damp walls breathe."],
    absent=["Gloss paint is for doors.", "Lime wash is for stables."],
)
def picked_by_number(config):
    @chain
    def answer(question):
        docs = finding(
            "Gloss paint is for doors.",
            "Silicate paint lets damp walls breathe.",
            "Lime wash is for stables.",
        ).invoke(question)
        listed = "\n".join(f"{n}. {doc.page_content}" for n, doc in enumerate(docs))
        number = chat("1").invoke(f"{listed}\nWhich fits '{question}'? Number only.").text
        kept = docs[int(number)].page_content
        return chat("Silicate paint suits bathrooms.").invoke(f"{kept}\n\n{question}").text

    answer.invoke("Which paint is for bathrooms?", config)


@app(
    "a tool's text that is shortened, with all of it as an artifact",
    question="Who wrote the opera?",
    answer="Smetana wrote the opera.",
    chunks=["The opera is by Smetana."],
    absent=["It was first performed in 1866 in Prague."],
)
def shortened(config):
    @tool(response_format="content_and_artifact")
    def programme(query: str):
        """Looks into the programme."""
        doc = Document("The opera is by Smetana. It was first performed in 1866 in Prague.")
        return doc.page_content[:24], [doc]

    model = chat(calling("programme", query="opera"), "Smetana wrote the opera.")
    create_agent(model, [programme]).invoke(ask("Who wrote the opera?"), config)


@app(
    "a service that streams",
    question="Hvor kan jeg lade bilen?",
    answer="Du kan lade bilen bak stasjonen.",
    chunks=["Ladestasjonen ligger bak stasjonen."],
)
def service(config):
    application = (
        sources("Ladestasjonen ligger bak stasjonen.")
        | PROMPT
        | chat("Du kan lade bilen bak stasjonen.")
        | StrOutputParser()
    )
    api = FastAPI()

    @api.get("/ask")
    async def endpoint(question: str):
        return StreamingResponse(application.astream(question, config))

    TestClient(api).get("/ask", params={"question": "Hvor kan jeg lade bilen?"})


@app(
    "code as documents",
    question="What does retry do on the third failure?",
    answer="It raises the last error.",
    chunks=["def retry(call):\n    for _ in range(3):\n        try: return call()"],
    prompt=["# file: net/retry.py"],
)
def code(config):
    text = "def retry(call):\n    for _ in range(3):\n        try: return call()"

    def fence(docs):
        return "\n".join(f"```python\n# file: net/retry.py\n{d.page_content}\n```" for d in docs)

    application = (
        {"context": finding(text) | fence, "question": RunnablePassthrough()}
        | PROMPT
        | chat("It raises the last error.")
        | StrOutputParser()
    )
    application.invoke("What does retry do on the third failure?", config)


@app(
    "an HTML table that a tool returns",
    question="What does a double room cost in May?",
    answer="A double room costs 118 EUR in May.",
    prompt=["double", "118", "May"],
)
def html_table(config):
    @tool
    def price_page(month: str) -> str:
        """The page of prices."""
        return (
            "<table><tr><th>room</th><th>May</th></tr>"
            "<tr><td>single</td><td>82</td></tr><tr><td>double</td><td>118</td></tr></table>"
        )

    model = chat(calling("price_page", month="May"), "A double room costs 118 EUR in May.")
    create_agent(model, [price_page]).invoke(ask("What does a double room cost in May?"), config)


@app(
    "the same document twice",
    question="Is the pharmacy open at night?",
    answer="Yes, ring the bell after eight.",
    chunks=["After eight in the evening ring the bell of the pharmacy."],
)
def same_document(config):
    search = create_retriever_tool(
        finding("After eight in the evening ring the bell of the pharmacy."), "search", "Searches."
    )
    model = chat(
        calling_all(("search", {"query": "pharmacy"}), ("search", {"query": "night"})),
        "Yes, ring the bell after eight.",
    )
    create_agent(model, [search]).invoke(ask("Is the pharmacy open at night?"), config)


@app(
    "examples that a selector picks",
    question="Is 'the food was cold' a complaint?",
    answer="complaint",
    prompt=["the soup was cold", "the staff was kind", "Label: complaint"],
)
def selected_examples(config):
    examples = [
        {"text": "the soup was cold", "label": "complaint"},
        {"text": "the staff was kind", "label": "praise"},
    ]
    selector = SemanticSimilarityExampleSelector.from_examples(
        examples, Hashed(), InMemoryVectorStore, k=2
    )
    prompt = FewShotPromptTemplate(
        example_selector=selector,
        example_prompt=PromptTemplate.from_template("Text: {text}\nLabel: {label}"),
        suffix="Text: {question}\nLabel:",
        input_variables=["question"],
    )
    (prompt | chat("complaint") | StrOutputParser()).invoke(
        {"question": "Is 'the food was cold' a complaint?"}, config
    )


@app(
    "a branch by language",
    question="¿Hay aparcamiento?",
    answer="Sí, detrás del hotel. Es gratuito.",
    chunks=["Parking: behind the hotel, 20 places"],
    invented=["Es gratuito."],
)
def branch(config):
    def is_spanish(given):
        return chat("es").invoke(f"Language of: {given['question']}").text == "es"

    shown = RunnablePassthrough.assign(
        context=itemgetter("question") | finding("Parking: behind the hotel, 20 places") | joined
    )
    spanish = PROMPT | chat("Sí, detrás del hotel. Es gratuito.")
    english = PROMPT | chat("Yes, behind the hotel.")
    (shown | RunnableBranch((is_spanish, spanish), english) | StrOutputParser()).invoke(
        {"question": "¿Hay aparcamiento?"}, config
    )


@app(
    "a retriever in a thread of asyncio",
    question="Where is the lost property office?",
    answer="The lost property office is at gate 2.",
    chunks=["Lost property: gate 2, open until six"],
)
async def to_thread(config):
    async def answer(given):
        docs = await asyncio.to_thread(
            finding("Lost property: gate 2, open until six").invoke, given["question"]
        )
        model = chat("The lost property office is at gate 2.")
        made = await model.ainvoke([SystemMessage(joined(docs)), HumanMessage(given["question"])])
        return {"answer": made.text}

    await RunnableLambda(answer).ainvoke({"question": "Where is the lost property office?"}, config)


@app(
    "a provider's structured reply",
    question="Wie heißt der Hausarzt und wann hat er offen?",
    answer=["Dr. Huber", "montags bis zwölf"],
    chunks=["Hausarzt: Dr. Huber, Mo 8-12"],
)
def provider_structured(config):
    class Doctor(BaseModel):
        name: str
        hours: str

    @tool
    def aerzte(ort: str) -> str:
        """Ärzte im Ort."""
        return "Hausarzt: Dr. Huber, Mo 8-12"

    reply = json.dumps({"name": "Dr. Huber", "hours": "montags bis zwölf"})
    create_agent(
        chat(calling("aerzte", ort="hier"), reply),
        [aerzte],
        response_format=ProviderStrategy(Doctor),
    ).invoke(ask("Wie heißt der Hausarzt und wann hat er offen?"), config)


@app(
    "a majority of three answers",
    question="How many steps has the tower?",
    answer="366",
    chunks=["The tower has 366 steps."],
    absent=["365"],
)
def majority(config):
    @chain
    def answer(question):
        prompt = f"{joined(finding('The tower has 366 steps.').invoke(question))}\n\n{question}"
        voters = chat("366", "365", "366")
        votes = [voters.invoke(prompt).text for _ in range(3)]
        return max(set(votes), key=votes.count)

    answer.invoke("How many steps has the tower?", config)


@app(
    "an e-mail that is answered from a knowledge base",
    question="Can I move my appointment on Friday?",
    answer="Dear Ms Falk, yes: choose a new time in the portal until Thursday.",
    chunks=["Appointments can be moved in the portal until the day before."],
    status="no_question",
)
def mail(config):
    class Mail(TypedDict, total=False):
        email: dict[str, str]
        notes: str
        reply: str

    def look_up(state: Mail):
        docs = finding("Appointments can be moved in the portal until the day before.")
        return {"notes": joined(docs.invoke(state["email"]["body"]))}

    def write(state: Mail):
        asked = f"Notes: {state['notes']}\n\nReply to this mail:\n{state['email']['body']}"
        reply = "Dear Ms Falk, yes: choose a new time in the portal until Thursday."
        return {"reply": chat(reply).invoke(asked).text}

    graph = StateGraph(Mail)
    graph.add_sequence([look_up, write])
    graph.add_edge(START, "look_up")
    mail = {
        "from": "falk@mail.example",
        "subject": "Appointment",
        "body": "Can I move my appointment on Friday?",
    }
    graph.compile().invoke({"email": mail}, config)


@app(
    "a history of tool calls that the application loads",
    question="And the second hotel?",
    answer="Hotel Linde has a pool.",
    prompt=["Hotel Linde: pool, no parking", "Hotel Rose: parking, no pool"],
    absent=["The first one, Hotel Rose, has no pool I am afraid."],
)
def loaded_history(config):
    class Chat(MessagesState):
        pass

    history = [
        HumanMessage("Does the first hotel have a pool?"),
        AIMessage("", tool_calls=[{"name": "hotels", "args": {"town": "Ulm"}, "id": "call_old"}]),
        ToolMessage(
            "Hotel Rose: parking, no pool\nHotel Linde: pool, no parking", tool_call_id="call_old"
        ),
        AIMessage("The first one, Hotel Rose, has no pool I am afraid."),
    ]
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Help."), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    application = (
        RunnablePassthrough.assign(history=lambda _: history)
        | prompt
        | chat("Hotel Linde has a pool.")
        | StrOutputParser()
    )
    application.invoke({"question": "And the second hotel?"}, config)


@app(
    "passages with a context that was written when they were indexed",
    question="How much did sales grow?",
    answer="Sales of the lamp division grew by three per cent.",
    chunks=["From the report of 2024 about the lamp division: sales grew by three per cent."],
)
def contextual(config):
    texts = store("From the report of 2024 about the lamp division: sales grew by three per cent.")
    application = (
        {"context": texts.as_retriever() | joined, "question": RunnablePassthrough()}
        | PROMPT
        | chat("Sales of the lamp division grew by three per cent.")
        | StrOutputParser()
    )
    application.invoke("How much did sales grow?", config)

"""Functions in functions, requests as objects, texts without a retriever."""

import asyncio

from harness import app
from llama_index.core import Document
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.prompts import RichPromptTemplate
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.readers.base import BaseReader
from llama_index.core.tools.ondemand_loader_tool import OnDemandLoaderTool
from llama_index.core.tools.tool_spec.base import BaseToolSpec
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_fakes import (
    Shelf,
    call,
    default_model,
    following,
    index,
    memory,
    scored,
    talker,
    when,
    writer,
)

dispatcher = get_dispatcher(__name__)

FERRY = "The ferry to the island leaves at 7:40 and at 16:10."
BIKE = "Bicycles travel free of charge on every ferry."
DOGS = "Dogs need a ticket for children."


def lines(nodes):
    return "\n".join(node.get_content() for node in nodes)


# --- functions ------------------------------------------------------------------------------------


@app(
    "a decorated function made of decorated functions",
    question="When does the ferry leave?",
    answer="At 7:40 and at 16:10. Seats are numbered.",
    chunks=[FERRY],
    absent=["ferry departure times"],
    invented=["Seats are numbered."],
)
async def nested_functions():
    llm = talker("ferry departure times", "At 7:40 and at 16:10. Seats are numbered.")

    @dispatcher.span
    async def rewrite(question):
        return (await llm.acomplete(f"Search words: {question}")).text

    @dispatcher.span
    async def search(query):
        return lines(await Shelf(FERRY).aretrieve(query))

    @dispatcher.span
    async def write(question, context):
        return (await llm.acomplete(f"<facts>{context}</facts>\n{question}")).text

    @dispatcher.span
    async def ask(question):
        return await write(question, await search(await rewrite(question)))

    await ask("When does the ferry leave?")


class Request(BaseModel):
    """A request to a web service."""

    tenant: str
    question: str


class Service:
    """Memory of a web service."""

    def __init__(self, retriever, llm):
        self.retriever, self.llm = retriever, llm

    @dispatcher.span
    def handle(self, request: Request) -> dict:
        nodes = self.retriever.retrieve(request.question)
        said = self.llm.complete(f"{lines(nodes)}\n\nQ: {request.question}").text
        return {"answer": said, "sources": [node.node_id for node in nodes], "took_ms": 12}


@app(
    "a decorated method that is sent an object and returns a dictionary",
    question="What does a bicycle cost?",
    answer="Nothing at all.",
    chunks=[BIKE],
)
def request_object():
    service = Service(Shelf(BIKE), writer("Nothing at all."))
    service.handle(Request(tenant="isle", question="What does a bicycle cost?"))


@app(
    "a decorated function over a list of questions",
    question="Do dogs travel free?",
    answer="No, they need a child's ticket.",
    chunks=[DOGS],
    absent=[BIKE, "Yes, they do."],
    cases=2,
)
def questions_at_once():
    @dispatcher.span
    def answer_all(questions):
        llm = writer(when({DOGS: "No, they need a child's ticket."}, "Yes, they do."))
        engines = [index(text).as_query_engine(llm=llm) for text in (BIKE, DOGS)]
        asked = zip(engines, questions, strict=True)
        return [str(engine.query(question)) for engine, question in asked]

    answer_all(["Do bicycles travel free?", "Do dogs travel free?"])


@app(
    "a framed function that calls its provider's own client",
    question="When does the ferry leave?",
    answer="Twice a day, first at 7:40.",
    chunks=[FERRY, BIKE],
)
def foreign_client():
    def post(prompt):
        assert FERRY in prompt
        return {"choices": [{"message": {"content": "Twice a day, first at 7:40."}}]}

    @following().trace
    def ask(question):
        found = lines(Shelf(FERRY, BIKE).retrieve(question))
        return post(f"{found}\n{question}")["choices"][0]["message"]["content"]

    ask("When does the ferry leave?")


# --- workflows ------------------------------------------------------------------------------------


@app(
    "a question that is translated, and an answer that is translated back",
    question="Wann fährt die Fähre?",
    answer="Sie fährt um 7:40 und um 16:10 Uhr.",
    chunks=[FERRY],
    absent=["When is the ferry going?", "It goes at 7:40 and 16:10, I believe."],
)
async def translated():
    llm = talker(
        "When is the ferry going?",
        "It goes at 7:40 and 16:10, I believe.",
        "Sie fährt um 7:40 und um 16:10 Uhr.",
    )

    class Translated(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            english = (await llm.acomplete(f"Into English: {ev.question}")).text
            nodes = await Shelf(FERRY).aretrieve(english)
            said = (await llm.acomplete(f"{lines(nodes)}\n\n{english}")).text
            return StopEvent(result=(await llm.acomplete(f"Into German: {said}")).text)

    await Translated(timeout=20).run(question="Wann fährt die Fähre?")


@app(
    "a short and a long answer by two calls",
    question="May I take my bicycle?",
    answer=("Yes, free of charge.", "Yes: bicycles cost nothing. Helmets are lent out."),
    chunks=[BIKE],
    invented=["Helmets are lent out."],
)
async def short_and_long():
    llm = talker(
        when(
            {
                "one line": "Yes, free of charge.",
                "at length": "Yes: bicycles cost nothing. Helmets are lent out.",
            }
        )
    )

    class Both(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            found = lines(await Shelf(BIKE).aretrieve(ev.question))
            short = await llm.acomplete(f"{found}\n{ev.question} Answer in one line.")
            long = await llm.acomplete(f"{found}\n{ev.question} Answer at length.")
            return StopEvent(result={"short": short.text, "long": long.text})

    await Both(timeout=20).run(question="May I take my bicycle?")


class Piece(Event):
    text: str


@app(
    "an answer that only the streamed events hold",
    question="When does the ferry leave?",
    answer="Mornings at 7:40.",
    chunks=[FERRY],
    status="no_answer",
)
async def only_events():
    class Streaming(Workflow):
        @step
        async def work(self, ctx: Context, ev: StartEvent) -> StopEvent:
            found = lines(await Shelf(FERRY).aretrieve(ev.question))
            stream = await talker("Mornings at 7:40.").astream_complete(f"{found}\n{ev.question}")
            async for piece in stream:
                ctx.write_event_to_stream(Piece(text=piece.delta))
            return StopEvent()

    run = Streaming(timeout=20).run(question="When does the ferry leave?")
    async for _ in run.stream_events():
        pass
    await run


class Price(Event):
    text: str


class Sum(Event):
    kind: str


@app(
    "short texts that three steps look up at the same time",
    question="What do we pay for two adults and a dog?",
    answer="24 euros in all.",
    prompt=["Adult: 10 euros.", "Dog: 4 euros.", "No fee for cards."],
)
async def collected():
    prices = {"adult": "Adult: 10 euros.", "dog": "Dog: 4 euros.", "fee": "No fee for cards."}

    class Till(Workflow):
        @step
        async def begin(self, ctx: Context, ev: StartEvent) -> Sum | None:
            await ctx.store.set("question", ev.question)
            for kind in prices:
                ctx.send_event(Sum(kind=kind))

        @step(num_workers=3)
        async def look_up(self, ev: Sum) -> Price:
            return Price(text=prices[ev.kind])

        @step
        async def answer(self, ctx: Context, ev: Price) -> StopEvent | None:
            found = ctx.collect_events(ev, [Price] * 3)
            if found is None:
                return None
            question = await ctx.store.get("question")
            listed = "; ".join(each.text for each in found)
            said = await talker("24 euros in all.").acomplete(f"{question}\nPrices: {listed}")
            return StopEvent(result=said.text)

    await Till(timeout=20).run(question="What do we pay for two adults and a dog?")


@app(
    "two engines in threads that a step waits for",
    question="May dog and bicycle come along?",
    answer="Both may, the dog with a child's ticket.",
    chunks=[BIKE, DOGS],
    absent=["It rides for nothing.", "It pays like a child."],
)
async def engines_in_threads():
    bikes = index(BIKE).as_query_engine(llm=writer("It rides for nothing."))
    dogs = index(DOGS).as_query_engine(llm=writer("It pays like a child."))

    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            said = await asyncio.gather(
                asyncio.to_thread(bikes.query, "bicycle?"), asyncio.to_thread(dogs.query, "dog?")
            )
            notes = "\n".join(f"- {each}" for each in said)
            llm = talker("Both may, the dog with a child's ticket.")
            return StopEvent(result=(await llm.acomplete(f"{notes}\n{ev.question}")).text)

    await Desk(timeout=20).run(question="May dog and bicycle come along?")


# --- prompts --------------------------------------------------------------------------------------


@app(
    "a rich prompt with roles, and a loop that shows metadata",
    question="Which page says when the ferry leaves?",
    answer="Page 3 of the timetable.",
    chunks=[FERRY],
    prompt=["timetable, page 3"],
)
async def rich_prompt():
    template = RichPromptTemplate(
        '{% chat role="system" %}Known:\n{% for node in nodes %}'
        "({{ node.metadata.place }}) {{ node.text }}\n{% endfor %}{% endchat %}"
        '{% chat role="user" %}{{ question }}{% endchat %}'
    )

    class Rich(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            shelf = Shelf(scored(FERRY, metadata={"place": "timetable, page 3"}))
            nodes = await shelf.aretrieve(ev.question)
            messages = template.format_messages(
                nodes=[each.node for each in nodes], question=ev.question
            )
            said = await talker("Page 3 of the timetable.").achat(messages)
            return StopEvent(result=said.message.content)

    await Rich(timeout=20).run(question="Which page says when the ferry leaves?")


class Signed(CustomQueryEngine):
    """Writes under each answer where it is from."""

    retriever: object
    llm: object

    def custom_query(self, query_str):
        nodes = self.retriever.retrieve(query_str)
        said = self.llm.complete(f"{lines(nodes)}\n{query_str}").text
        return f"{said}\n\nSource: {nodes[0].metadata['file']}"


@app(
    "an engine that writes the source under the answer",
    question="Do dogs travel free?",
    answer="No: a dog needs a ticket for children.\n\nSource: rules.pdf",
    chunks=[DOGS],
)
def signed():
    shelf = Shelf(scored(DOGS, metadata={"file": "rules.pdf"}))
    llm = writer("No: a dog needs a ticket for children.")
    Signed(retriever=shelf, llm=llm).query("Do dogs travel free?")


@app(
    "memories of a store in the system prompt of a chat over documents",
    question="Which ferry suits me?",
    answer="The one at 16:10, as you sleep long.",
    chunks=[FERRY],
    prompt=["Likes to sleep until noon."],
)
def memories_in_chat():
    kept = [{"memory": "Likes to sleep until noon.", "score": 0.71}]
    engine = ContextChatEngine.from_defaults(
        retriever=Shelf(FERRY),
        llm=talker("The one at 16:10, as you sleep long."),
        memory=memory(),
        system_prompt="About the user:\n" + "\n".join(f"* {each['memory']}" for each in kept),
    )
    engine.chat("Which ferry suits me?")


# --- tools ----------------------------------------------------------------------------------------


class Timetable(BaseReader):
    """Reads a port's timetable."""

    def load_data(self, port: str) -> list[Document]:
        """Load the timetable of a port."""
        return [Document(text=FERRY, metadata={"port": port})]


@app(
    "a tool that loads documents on demand and answers from them",
    question="When does the ferry leave from Port Anna?",
    answer="From Port Anna at 7:40 and 16:10.",
    chunks=[FERRY],
    absent=["Departures are twenty to eight and ten past four."],
)
async def on_demand():
    with default_model(writer("Departures are twenty to eight and ten past four.")):
        tool = OnDemandLoaderTool.from_defaults(
            Timetable(), name="timetable", description="Timetables"
        )
        llm = talker(
            call("timetable", port="Anna", query_str="departures"),
            "From Port Anna at 7:40 and 16:10.",
        )
        await FunctionAgent(tools=[tool], llm=llm).run(
            "When does the ferry leave from Port Anna?", memory=memory()
        )


@app(
    "a tool that books, and says so",
    question="Book the late ferry for two people.",
    answer="Done: two seats at 16:10, booking K-77. Breakfast is included.",
    chunks=["Booked 2 seats, 16:10. Booking K-77."],
    invented=["Breakfast is included."],
)
async def booking():
    def book(time: str, people: int) -> str:
        """Book seats."""
        return f"Booked {people} seats, {time}. Booking K-77."

    llm = talker(
        call("book", time="16:10", people=2),
        "Done: two seats at 16:10, booking K-77. Breakfast is included.",
    )
    await FunctionAgent(tools=[book], llm=llm).run(
        "Book the late ferry for two people.", memory=memory()
    )


class Harbour(BaseToolSpec):
    """Tools of a harbour."""

    spec_functions = ("berths", "tides")

    def berths(self, length: int) -> list[dict]:
        """Free berths of a length in metres."""
        return [{"berth": "A4", "metres": 12}, {"berth": "C1", "metres": 14}]

    def tides(self, day: str) -> dict:
        """Tides of a day."""
        return {"day": day, "high": "5:20", "low": "11:35"}


@app(
    "rows and a record of two tools of one specification",
    question="Where can a boat of 11 metres berth at high tide?",
    answer="At A4 or C1, at 5:20.",
    chunks=["A4", "C1", "5:20"],
)
async def tool_specification():
    llm = talker([call("berths", length=11), call("tides", day="today")], "At A4 or C1, at 5:20.")
    await FunctionAgent(tools=Harbour().to_tool_list(), llm=llm).run(
        "Where can a boat of 11 metres berth at high tide?", memory=memory()
    )


# --- batches --------------------------------------------------------------------------------------


@app(
    "a decorated job that reads its questions from a file",
    question="Do dogs travel free?",
    answer="Dogs pay like a child.",
    chunks=[DOGS],
    absent=[BIKE, "Bicycles do."],
    cases=2,
)
def nightly():
    stored = {"nightly.txt": ["Do bicycles travel free?", "Do dogs travel free?"]}

    @dispatcher.span
    def work(file):
        llm = writer(when({DOGS: "Dogs pay like a child."}, "Bicycles do."))
        engines = [index(text).as_query_engine(llm=llm) for text in (BIKE, DOGS)]
        for engine, question in zip(engines, stored[file], strict=True):
            engine.query(question)

    work("nightly.txt")


@app(
    "a decorated function with an id before its text, which returns nothing",
    question="Do dogs travel free?",
    answer="Not quite: a child's ticket.",
    chunks=[DOGS],
)
async def id_and_text():
    sent = []

    @dispatcher.span
    async def on_message(chat_id, text):
        nodes = await Shelf(DOGS).aretrieve(text)
        said = await talker("Not quite: a child's ticket.").acomplete(f"{lines(nodes)}\n{text}")
        sent.append((chat_id, said.text))

    await on_message("chat-19", "Do dogs travel free?")


@app(
    "a decorated function around a chat engine, in its second turn",
    question="And dogs?",
    answer="They pay like children.",
    chunks=[DOGS],
    absent=["Bikes ride free, madam."],
    cases=2,
)
async def decorated_chat():
    llm = talker(when({"And dogs?": "They pay like children."}, "Bikes ride free, madam."))
    shelf = Shelf(BIKE)
    engine = ContextChatEngine.from_defaults(retriever=shelf, llm=llm, memory=memory())

    @dispatcher.span
    async def chat(message):
        return await engine.achat(message)

    await chat("Do bicycles travel free?")
    shelf.found = Shelf(DOGS).found
    await chat("And dogs?")


@app(
    "a decorated function around an agent whose stream of events it reads",
    question="When does the late ferry leave?",
    answer="At ten past four.",
    chunks=[FERRY],
)
async def decorated_agent():
    def timetable() -> str:
        """The timetable."""
        return FERRY

    agent = FunctionAgent(tools=[timetable], llm=talker(call("timetable"), "At ten past four."))

    @dispatcher.span
    async def ask(question):
        run = agent.run(question, memory=memory())
        async for _ in run.stream_events():
            pass
        return str(await run)

    await ask("When does the late ferry leave?")


@app(
    "a decorated function that returns an engine's stream",
    question="Do bicycles cost anything?",
    answer="Not a cent.",
    chunks=[BIKE],
)
def decorated_stream():
    @dispatcher.span
    def ask(question):
        return (
            index(BIKE).as_query_engine(streaming=True, llm=talker("Not a cent.")).query(question)
        )

    assert "".join(ask("Do bicycles cost anything?").response_gen) == "Not a cent."

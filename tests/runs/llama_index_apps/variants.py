"""Variants of known shapes: no rule may hold for one sample only."""

import asyncio
import json
from dataclasses import dataclass

from harness import app
from llama_index.core import Document, PromptTemplate, SummaryIndex, get_response_synthesizer
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, CitableBlock, CitationBlock, TextBlock
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import CondensePlusContextChatEngine, CondenseQuestionChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Shelf, call, index, memory, scored, talker, when, writer

dispatcher = get_dispatcher(__name__)

PASS = "A ski pass for a day costs 54 francs."
BUS = "The ski bus is free with a pass."
SNOW = "Powder snow: 35 cm at the Gratspitz since Tuesday."


def listed(nodes):
    return "\n".join(f"* {node.get_content()}" for node in nodes)


# --- functions ------------------------------------------------------------------------------------


@dataclass
class Assistant:
    """What a command-line program keeps."""

    retriever: object
    llm: object
    system: str

    async def reply(self, text):
        found = await self.retriever.aretrieve(text)
        messages = [
            ChatMessage(role="system", content=f"{self.system}\n\n{listed(found)}"),
            ChatMessage(role="user", content=text),
        ]
        said = ""
        async for piece in await self.llm.astream_chat(messages):
            said += piece.delta or ""
        return said


@app(
    "a command-line program's loop over two questions",
    question="Is the bus included?",
    answer="Yes, with a pass you ride for free. Dogs too.",
    chunks=[BUS],
    prompt=["Office hours are 8 to 17."],
    absent=[PASS, "That would be fifty-four."],
    invented=["Dogs too."],
    cases=2,
)
async def program():
    for retriever, said, question in (
        (Shelf(PASS), "That would be fifty-four.", "What does a day cost?"),
        (Shelf(BUS), "Yes, with a pass you ride for free. Dogs too.", "Is the bus included?"),
    ):
        await Assistant(retriever, talker(said), "Office hours are 8 to 17.").reply(question)


@app(
    "two searches of one function, of which the prompt has one",
    question="How much snow is there?",
    answer="35 centimetres of powder.",
    chunks=[SNOW],
    absent=[PASS],
)
def one_of_two_searches():
    question = "How much snow is there?"
    hits = [*Shelf(PASS).retrieve(question), *Shelf(SNOW).retrieve(question)]
    best = [hit for hit in hits if "snow" in hit.text.lower()]
    writer("35 centimetres of powder.").complete(f"{listed(best)}\n\n{question}")


@app(
    "a function that retries a model's bad JSON",
    question="What does a day cost?",
    answer=("54",),
    chunks=[PASS],
)
def bad_json():
    question = "What does a day cost?"
    llm = talker("fifty-four, I'd say", json.dumps({"francs": 54}))

    @dispatcher.span
    def price(question):
        context = listed(Shelf(PASS).retrieve(question))
        for _ in range(2):
            said = llm.complete(f"{context}\n{question}\nJSON only.").text
            try:
                return str(json.loads(said)["francs"])
            except ValueError:
                continue
        return ""

    price(question)


@app(
    "a coroutine under the dispatcher's span that asks an engine and a model",
    question="Pass and bus: what should I know?",
    answer="54 francs, and the bus costs nothing.",
    chunks=[PASS, BUS],
    absent=["Fifty-four for the day pass."],
)
async def engine_and_model():
    engine = index(PASS).as_query_engine(llm=writer("Fifty-four for the day pass."))

    @dispatcher.span
    async def advise(question):
        first = await engine.aquery("price of a pass")
        nodes = await Shelf(BUS).aretrieve("bus")
        said = await talker("54 francs, and the bus costs nothing.").acomplete(
            f"Known: {first}\nAlso: {nodes[0].text}\nQuestion: {question}"
        )
        return said.text

    await advise("Pass and bus: what should I know?")


@app(
    "a synthesizer for a search that was made before, elsewhere",
    question="Is the bus free?",
    answer="It is, for holders of a pass.",
    chunks=[BUS],
)
def synthesize_stored():
    stored = json.dumps([node.text for node in Shelf(BUS).found])
    texts = json.loads(stored)
    get_response_synthesizer(llm=writer("It is, for holders of a pass.")).get_response(
        "Is the bus free?", texts
    )


# --- inputs ---------------------------------------------------------------------------------------


class Brief(StartEvent):
    task: str
    source_text: str
    language: str = "en"


@app(
    "a start event with a task and a source text",
    question="Sum the bulletin up in one sentence.",
    answer="It snowed 35 cm at the Gratspitz.",
    prompt=[SNOW],
)
async def task_and_source():
    class Sum(Workflow):
        @step
        async def work(self, ev: Brief) -> StopEvent:
            said = await talker("It snowed 35 cm at the Gratspitz.").acomplete(
                f"<source>{ev.source_text}</source>\n{ev.task} Language: {ev.language}"
            )
            return StopEvent(result=said.text)

    await Sum(timeout=20).run(
        task="Sum the bulletin up in one sentence.",
        source_text=f"{SNOW} More is expected on Friday, when the wind turns to the north.",
    )


class Mail(Event):
    mails: list[dict]


@app(
    "mails of an inbox in a workflow's event",
    question="When does my class start?",
    answer="At ten, at the yellow flag.",
    prompt=["Class 4 starts at ten at the yellow flag."],
    absent=["Buy cheap watches now."],
)
async def inbox():
    class Inbox(Workflow):
        @step
        async def load(self, ctx: Context, ev: StartEvent) -> Mail:
            await ctx.store.set("question", ev.question)
            return Mail(
                mails=[
                    {"from": "school", "body": "Class 4 starts at ten at the yellow flag."},
                    {"from": "shop", "body": "Buy cheap watches now."},
                ]
            )

        @step
        async def answer(self, ctx: Context, ev: Mail) -> StopEvent:
            known = [m["body"] for m in ev.mails if m["from"] == "school"]
            question = await ctx.store.get("question")
            said = await writer("At ten, at the yellow flag.").acomplete(
                "\n".join([*known, question])
            )
            return StopEvent(result=said.text)

    await Inbox(timeout=20).run(question="When does my class start?")


@app(
    "a user's message of three blocks, the question last",
    question="Which of the two is cheaper?",
    answer="The pass of Lauen, at 49 francs.",
    chunks=["Tax is included in all prices."],
    prompt=["Offer A, Gstaad: 54 francs a day.", "Offer B, Lauen: 49 francs a day."],
)
async def three_blocks():
    def tax() -> str:
        """Whether tax is included."""
        return "Tax is included in all prices."

    message = ChatMessage(
        role="user",
        blocks=[
            TextBlock(text="Offer A, Gstaad: 54 francs a day."),
            TextBlock(text="Offer B, Lauen: 49 francs a day."),
            TextBlock(text="Which of the two is cheaper?"),
        ],
    )
    llm = talker(call("tax"), "The pass of Lauen, at 49 francs.")
    await FunctionAgent(tools=[tax], llm=llm).run(message, memory=memory())


# --- answers --------------------------------------------------------------------------------------


@app(
    "an agent of two that ends with a tool for the answer",
    question="What does a day cost?",
    answer="A day costs 54 francs.",
    chunks=[PASS],
)
async def respond_tool():
    def prices(what: str) -> str:
        """The price list."""
        return PASS

    def respond(message: str, sources: list[str]) -> str:
        """Send the final answer to the user."""
        return message

    desk = FunctionAgent(
        name="desk",
        description="Answers",
        tools=[
            FunctionTool.from_defaults(prices),
            FunctionTool.from_defaults(respond, return_direct=True),
        ],
        llm=talker(
            call("prices", what="day"),
            call("respond", message="A day costs 54 francs.", sources=["price list"]),
        ),
    )
    await AgentWorkflow(agents=[desk], root_agent="desk").run(
        user_msg="What does a day cost?", memory=memory()
    )


class Item(BaseModel):
    """A line of an offer."""

    what: str
    francs: float


class Offer(BaseModel):
    """An offer with lines."""

    title: str
    items: list[Item]


@app(
    "an offer with lines, one of which is invented",
    question="Make me an offer for a day.",
    answer=("A day on the Gratspitz", "Day pass", "54", "Lunch voucher", "18"),
    chunks=[PASS],
    invented=["Lunch voucher"],
)
async def offer():
    llm = talker(
        call(
            "Offer",
            title="A day on the Gratspitz",
            items=[{"what": "Day pass", "francs": 54}, {"what": "Lunch voucher", "francs": 18}],
        )
    )

    class Sell(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(PASS).aretrieve(ev.query)
            made = await llm.astructured_predict(
                Offer, PromptTemplate("{context}\n{query}"), context=listed(nodes), query=ev.query
            )
            return StopEvent(result=made.model_dump())

    await Sell(timeout=20).run(query="Make me an offer for a day.")


@app(
    "an answer in English and German",
    question="Is the bus free?",
    answer=("Yes, with a pass.", "Ja, mit einem Skipass."),
    chunks=[BUS],
)
async def two_languages():
    llm = talker(when({"German": "Ja, mit einem Skipass."}, "Yes, with a pass."))

    class Both(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(BUS).aretrieve(ev.query)
            english = await llm.acomplete(f"{nodes[0].text}\n{ev.query}")
            german = await llm.acomplete(f"{nodes[0].text}\n{ev.query} Answer in German.")
            return StopEvent(result={"en": english.text, "de": german.text})

    await Both(timeout=20).run(query="Is the bus free?")


@app(
    "an answer two levels deep beside numbers and flags",
    question="Is the bus free?",
    answer=("The bus is free for you.",),
    chunks=[BUS],
    status="no_answer",
)
async def deep():
    class Api(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(BUS).aretrieve(ev.query)
            said = await writer("The bus is free for you.").acomplete(
                f"{nodes[0].text}\n{ev.query}"
            )
            payload = {"output": {"text": said.text, "tokens": 7}, "finish_reason": "stop"}
            return StopEvent(result={"ok": True, "status": "done", "payload": payload})

    await Api(timeout=20).run(query="Is the bus free?")


# --- conversations --------------------------------------------------------------------------------


@app(
    "the third turn of an agent that has looked everything up before",
    question="So what do pass and bus cost together?",
    answer="54 francs in all, as the bus is free.",
    prompt=[PASS, BUS],
    absent=["A day is fifty-four, Sir.", "Nothing at all, the bus."],
    cases=3,
)
async def third_turn():
    def info(topic: str) -> str:
        """Information."""
        return PASS if topic == "pass" else BUS

    llm = talker(
        call("info", topic="pass"),
        "A day is fifty-four, Sir.",
        call("info", topic="bus"),
        "Nothing at all, the bus.",
        "54 francs in all, as the bus is free.",
    )
    agent, kept = FunctionAgent(tools=[info], llm=llm), memory()
    for question in (
        "What does a pass cost?",
        "And the bus?",
        "So what do pass and bus cost together?",
    ):
        await agent.run(question, memory=kept)


@app(
    "a reasoning agent in its second turn",
    question="And with the bus?",
    answer="The bus adds nothing.",
    chunks=[BUS],
    prompt=[PASS],
    absent=["It is fifty-four, and worth it."],
    cases=2,
)
async def react_second_turn():
    def info(topic: str) -> str:
        """Information."""
        return PASS if topic == "pass" else BUS

    llm = talker(
        'Thought: Look.\nAction: info\nAction Input: {"topic": "pass"}',
        "Thought: I can answer without using any more tools.\n"
        "Answer: It is fifty-four, and worth it.",
        'Thought: Look again.\nAction: info\nAction Input: {"topic": "bus"}',
        "Thought: I can answer without using any more tools.\nAnswer: The bus adds nothing.",
    )
    agent, kept = ReActAgent(tools=[info], llm=llm), memory()
    await agent.run("What does a pass cost?", memory=kept)
    await agent.run("And with the bus?", memory=kept)


@app(
    "a condensing chat in its third turn",
    question="Since when?",
    answer="Since Tuesday.",
    chunks=[SNOW],
    absent=[
        "Thirty-five, a good deal.",
        "On top of the Gratspitz, yes.",
        "Since when has the powder been there?",
    ],
    cases=3,
)
async def condensed_third_turn():
    llm = talker(
        when(
            {
                "Follow Up Input: Since": "Since when has the powder been there?",
                "Follow Up Input: Where": "Where is the powder?",
                "user: Since when?": "Since Tuesday.",
                "user: Where?": "On top of the Gratspitz, yes.",
            },
            "Thirty-five, a good deal.",
        )
    )
    chat = CondensePlusContextChatEngine.from_defaults(Shelf(SNOW), llm=llm, memory=memory())
    for question in ("How much powder is there?", "Where?", "Since when?"):
        await chat.achat(question)


@app(
    "a condensed question over a router in its second turn",
    question="And does it cost anything?",
    answer="No, it is free with a pass.",
    chunks=[BUS],
    absent=["Does the ski bus cost anything?", "Every ten minutes, all day long.", PASS],
    cases=2,
)
def condensed_router():
    llm = writer(
        when(
            {
                "standalone question": "Does the ski bus cost anything?",
                "Some choices": '[{"choice": 2, "reason": "it is about the bus"}]',
                "Query: Does the ski bus cost": "No, it is free with a pass.",
            },
            "Every ten minutes, all day long.",
        )
    )
    tools = [
        QueryEngineTool.from_defaults(
            RetrieverQueryEngine.from_args(Shelf(text), llm=llm), name=name, description=name
        )
        for name, text in (("prices", PASS), ("bus", BUS))
    ]
    router = RouterQueryEngine(LLMSingleSelector.from_defaults(llm=llm), tools, llm=llm)
    chat = CondenseQuestionChatEngine.from_defaults(router, llm=llm, memory=memory())
    chat.chat("How often does the bus go?")
    chat.chat("And does it cost anything?")


# --- models' words --------------------------------------------------------------------------------


@app(
    "an outline by a model, chapters from it, and a text of all",
    question="Write about a day on skis.",
    answer="For 54 francs you ski in 35 cm of powder. The huts are heated.",
    chunks=[PASS, SNOW],
    absent=["Costs of the day", "Chapter: fifty-four is the fee.", "Chapter: thirty-five deep."],
    invented=["The huts are heated."],
)
async def outline():
    llm = talker(
        when(
            {
                "Make an outline": call(
                    "Outline", chapters=["Costs of the day", "Snow of the day"]
                ),
                "Join": "For 54 francs you ski in 35 cm of powder. The huts are heated.",
                PASS: "Chapter: fifty-four is the fee.",
                SNOW: "Chapter: thirty-five deep.",
            }
        )
    )

    class Outline(BaseModel):
        """Chapters."""

        chapters: list[str]

    class Book(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            made = await llm.astructured_predict(
                Outline, PromptTemplate("Make an outline for: {query}"), query=ev.query
            )

            async def chapter(title, found):
                nodes = await found.aretrieve(title)
                return (await llm.acomplete(f"## {title}\n{nodes[0].text}")).text

            chapters = await asyncio.gather(
                *map(chapter, made.chapters, (Shelf(PASS), Shelf(SNOW)))
            )
            said = await llm.acomplete("Join:\n" + "\n\n".join(chapters) + f"\n\n{ev.query}")
            return StopEvent(result=said.text)

    await Book(timeout=20).run(query="Write about a day on skis.")


@app(
    "a to-do list that the model fills and reads with tools",
    question="What is left to do for my trip?",
    answer="Only the bus ticket is left, and the bus is free.",
    chunks=[BUS],
    prompt=["open: bus ticket"],
    absent=["check the avalanche beacon twice"],
    allowed=["ok"],
)
async def to_do():
    kept = {"items": ["open: bus ticket"]}

    def add_item(item: str) -> str:
        """Add an item."""
        kept["items"].append(item)
        return "ok"

    def show_items() -> list:
        """All items."""
        return list(kept["items"])

    def bus() -> str:
        """About the bus."""
        return BUS

    llm = talker(
        call("add_item", item="check the avalanche beacon twice"),
        [call("show_items"), call("bus")],
        "Only the bus ticket is left, and the bus is free.",
    )
    await FunctionAgent(tools=[add_item, show_items, bus], llm=llm).run(
        "What is left to do for my trip?", memory=memory()
    )


@app(
    "entities that a model extracts, and a search with each",
    question="Compare Gratspitz and Lauen.",
    answer="The Gratspitz has powder, Lauen has none.",
    chunks=[SNOW, "Lauen: no snow at present."],
    absent=["snow report for the peak of Gratspitz"],
)
async def entities():
    class Names(BaseModel):
        """Search phrases."""

        phrases: list[str]

    llm = talker(
        call("Names", phrases=["snow report for the peak of Gratspitz", "Lauen"]),
        "The Gratspitz has powder, Lauen has none.",
    )

    class Compare(CustomQueryEngine):
        def custom_query(self, query_str):
            made = llm.structured_predict(Names, PromptTemplate("Phrases for: {q}"), q=query_str)
            found = {"Lauen": Shelf("Lauen: no snow at present.")}
            nodes = [n for p in made.phrases for n in found.get(p, Shelf(SNOW)).retrieve(p)]
            return llm.complete(f"Searched: {made.phrases}\n{listed(nodes)}\n{query_str}").text

    Compare().query("Compare Gratspitz and Lauen.")


@app(
    "sub-questions in a language of their own over a summary index",
    question="Was kostet der Tag, und fährt ein Bus?",
    answer="54 Franken, und der Bus ist frei.",
    chunks=[PASS, BUS],
    absent=["price of the day pass?", "Vierundfünfzig, ohne Essen.", "Gratis, mit Pass."],
)
async def german_sub_questions():
    plan = json.dumps(
        {
            "items": [
                {"sub_question": "price of the day pass?", "tool_name": "prices"},
                {"sub_question": "is there a bus?", "tool_name": "bus"},
            ]
        }
    )
    llm = talker(
        when(
            {
                "output a list of relevant sub-questions": plan,
                "Vierundfünfzig": "54 Franken, und der Bus ist frei.",
                PASS: "Vierundfünfzig, ohne Essen.",
                BUS: "Gratis, mit Pass.",
            }
        )
    )
    tools = [
        QueryEngineTool.from_defaults(
            SummaryIndex.from_documents([Document(text=text)]).as_query_engine(llm=llm),
            name=name,
            description=name,
        )
        for name, text in (("prices", PASS), ("bus", BUS))
    ]
    await SubQuestionQueryEngine.from_defaults(
        tools,
        llm=llm,
        question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
        use_async=True,
        verbose=False,
    ).aquery("Was kostet der Tag, und fährt ein Bus?")


# --- sources in blocks ----------------------------------------------------------------------------


@app(
    "two sources that a provider cited",
    question="What is new at the Gratspitz?",
    answer="There is powder, and the hut has reopened.",
    chunks=[SNOW, "Hut at the Gratspitz reopened on Sunday."],
)
async def two_citations():
    def hut() -> str:
        """The hut."""
        return "nothing known"

    reply = ChatMessage(
        role="assistant",
        blocks=[
            TextBlock(text="There is powder, and the hut has reopened."),
            *(
                CitationBlock(
                    cited_content=text,
                    source="https://snow.example",
                    title="Snow",
                    additional_location_info={"start_index": 0},
                )
                for text in (SNOW, "Hut at the Gratspitz reopened on Sunday.")
            ),
        ],
    )
    await FunctionAgent(tools=[hut], llm=talker(reply)).run(
        "What is new at the Gratspitz?", memory=memory()
    )


@app(
    "texts and a block to cite from one tool",
    question="How much powder, and what is a pass?",
    answer="35 cm; 54 francs.",
    chunks=[SNOW, PASS],
)
async def mixed_blocks():
    from llama_index_fakes import Talker

    class Reads(Talker):
        def _message(self, messages):
            flat = []
            for m in messages:
                blocks = [
                    TextBlock(text=b.content[0].text) if isinstance(b, CitableBlock) else b
                    for b in m.blocks
                ]
                flat.append(m.model_copy(update={"blocks": blocks}))
            return super()._message(flat)

    def bulletin() -> list:
        """Bulletin and prices."""
        return [
            TextBlock(text=SNOW),
            CitableBlock(title="Prices", source="list", content=[TextBlock(text=PASS)]),
        ]

    llm = Reads(reply=talker(call("bulletin"), "35 cm; 54 francs.").reply)
    await FunctionAgent(tools=[bulletin], llm=llm).run(
        "How much powder, and what is a pass?", memory=memory()
    )


@app(
    "a workflow that drops all documents and answers from its own table",
    question="What does half a day cost?",
    answer="Half a day is 31 francs.",
    prompt=["half day: 31 francs"],
    absent=[SNOW],
)
async def own_table():
    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = [n for n in await Shelf(SNOW).aretrieve(ev.query) if "francs" in n.text]
            table = "half day: 31 francs\nday: 54 francs"
            said = await talker("Half a day is 31 francs.").acomplete(
                f"{listed(nodes)}\n{table}\n{ev.query}"
            )
            return StopEvent(result=said.text)

    await Desk(timeout=20).run(query="What does half a day cost?")


@app(
    "metadata that only the prompt of a workflow shows",
    question="Who measured the snow?",
    answer="The patrol of Gstaad did.",
    chunks=[SNOW],
    prompt=["patrol of Gstaad"],
)
async def metadata_in_workflow():
    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            found = Shelf(scored(SNOW, metadata={"by": "patrol of Gstaad"}))
            nodes = await found.aretrieve(ev.query)
            lines = [f"{n.text} (measured by: {n.metadata['by']})" for n in nodes]
            said = await writer("The patrol of Gstaad did.").acomplete(
                "\n".join([*lines, ev.query])
            )
            return StopEvent(result=said.text)

    await Desk(timeout=20).run(query="Who measured the snow?")

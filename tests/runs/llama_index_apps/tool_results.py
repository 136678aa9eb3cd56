"""Everything that tools of agents return: dictionaries, nodes, blocks, JSON, texts of models."""

import json

from harness import app
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import (
    CitableBlock,
    TextBlock,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.schema import Document, NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool, ToolOutput
from llama_index.core.tools.tool_spec.base import BaseToolSpec
from llama_index_fakes import Shelf, Talker, call, index, memory, scored, talker, writer

DOSE = "Adults take two tablets a day with water."
STORE = "Keep the tablets below 25 degrees."
RECALL = "Lot 88 was recalled in May."


async def ask(question, llm, *tools, kind=FunctionAgent, **settings):
    return await kind(tools=list(tools), llm=llm, **settings).run(question, memory=memory())


@app(
    "a tool that returns an answer and its sources in a dictionary",
    question="How many tablets should I take?",
    answer="Two a day, with water. Children take half of one.",
    chunks=[DOSE],
    absent=["Two tablets daily. Children take half of one."],
    invented=["Children take half of one."],
)
async def answer_and_sources():
    engine = index(DOSE).as_query_engine(
        llm=talker("Two tablets daily. Children take half of one.")
    )

    def leaflet(question: str) -> dict:
        """Ask the leaflet."""
        response = engine.query(question)
        return {"answer": str(response), "sources": [n.text for n in response.source_nodes]}

    await ask(
        "How many tablets should I take?",
        talker(
            call("leaflet", question="dose"), "Two a day, with water. Children take half of one."
        ),
        leaflet,
    )


@app(
    "a tool that returns an answer and its sources in JSON",
    question="Where do I keep the tablets?",
    answer="Below 25 degrees.",
    chunks=[STORE],
    absent=["In a cool cupboard, not in the bathroom."],
)
async def answer_and_sources_json():
    engine = index(STORE).as_query_engine(llm=writer("In a cool cupboard, not in the bathroom."))

    def leaflet(question: str) -> str:
        """Ask the leaflet."""
        response = engine.query(question)
        return json.dumps(
            {
                "answer": response.response,
                "sources": [{"text": n.text, "score": 0.9} for n in response.source_nodes],
            }
        )

    await ask(
        "Where do I keep the tablets?",
        talker(call("leaflet", question="storage"), "Below 25 degrees."),
        leaflet,
    )


@app(
    "a tool that returns an answer without its sources",
    question="Where do I keep the tablets?",
    answer="They must be kept below 25 degrees.",
    chunks=[STORE],
    absent=["A cool cupboard will do, says the leaflet."],
)
async def answer_in_sentence():
    engine = index(STORE).as_query_engine(llm=writer("A cool cupboard will do, says the leaflet."))

    async def leaflet(question: str) -> str:
        """Ask the leaflet."""
        said = await engine.aquery(question)
        return f"The assistant for leaflets answered: {said} (checked 2 pages)"

    await ask(
        "Where do I keep the tablets?",
        talker(call("leaflet", question="storage"), "They must be kept below 25 degrees."),
        leaflet,
    )


@app(
    "a tool that returns facts beside an answer of a model",
    question="Is lot 88 safe, and who do I call?",
    answer="Lot 88 was recalled in May; call 0800 111 222.",
    chunks=[RECALL],
    prompt=["0800 111 222"],
    absent=["It has been called back by the maker."],
)
async def facts_beside_answer():
    engine = index(RECALL).as_query_engine(llm=writer("It has been called back by the maker."))

    def leaflet(question: str) -> dict:
        """Ask the leaflet."""
        return {"answer": str(engine.query(question)), "hotline": "0800 111 222"}

    await ask(
        "Is lot 88 safe, and who do I call?",
        talker(
            call("leaflet", question="recalls"), "Lot 88 was recalled in May; call 0800 111 222."
        ),
        leaflet,
    )


@app(
    "a tool that returns a list of nodes",
    question="How do I take and keep them?",
    answer="Two a day with water, kept below 25 degrees.",
    chunks=[DOSE, STORE],
)
async def list_of_nodes():
    def search(query: str) -> list:
        """Search the leaflet."""
        return [TextNode(text=DOSE), TextNode(text=STORE)]

    await ask(
        "How do I take and keep them?",
        talker(call("search", query="all"), "Two a day with water, kept below 25 degrees."),
        search,
    )


@app(
    "a tool that returns nodes with scores",
    question="How do I take and keep them?",
    answer="Two a day with water, kept below 25 degrees.",
    chunks=[DOSE, STORE],
)
async def nodes_with_scores():
    retriever = index(DOSE, STORE).as_retriever(similarity_top_k=2)

    def search(query: str) -> list[NodeWithScore]:
        """Search the leaflet."""
        return retriever.retrieve(query)

    await ask(
        "How do I take and keep them?",
        talker(call("search", query="tablets"), "Two a day with water, kept below 25 degrees."),
        search,
    )


@app(
    "a tool that returns documents",
    question="How do I take them?",
    answer="Two tablets a day.",
    chunks=[DOSE],
)
async def documents():
    def load(name: str) -> list[Document]:
        """Load the pages of a leaflet."""
        return [Document(text=DOSE, metadata={"page": 1})]

    await ask(
        "How do I take them?", talker(call("load", name="leaflet"), "Two tablets a day."), load
    )


@app(
    "a retriever as a tool",
    question="How do I take them?",
    answer="Two tablets a day. Not with milk.",
    chunks=[DOSE, STORE],
    invented=["Not with milk."],
)
async def retriever_tool():
    tool = RetrieverTool.from_defaults(
        index(DOSE, STORE).as_retriever(similarity_top_k=2),
        name="leaflet",
        description="The leaflet",
    )
    await ask(
        "How do I take them?",
        talker(call("leaflet", input="dose"), "Two tablets a day. Not with milk."),
        tool,
    )


@app(
    "a retriever as a tool, with metadata that the model sees",
    question="Which page says how to take them?",
    answer="Page 3: two tablets a day.",
    chunks=[DOSE],
    prompt=["page: 3"],
)
async def retriever_tool_with_metadata():
    tool = RetrieverTool.from_defaults(
        Shelf(scored(DOSE, metadata={"page": 3})), name="leaflet", description="The leaflet"
    )
    await ask(
        "Which page says how to take them?",
        talker(call("leaflet", input="dose"), "Page 3: two tablets a day."),
        tool,
    )


@app(
    "several text blocks of a tool",
    question="How do I take and keep them?",
    answer="Two a day; below 25 degrees.",
    chunks=[DOSE, STORE],
)
async def text_blocks():
    def pages(name: str) -> list:
        """Pages of a leaflet."""
        return [TextBlock(text=DOSE), TextBlock(text=STORE)]

    await ask(
        "How do I take and keep them?",
        talker(call("pages", name="leaflet"), "Two a day; below 25 degrees."),
        pages,
    )


@app(
    "a block of a tool that can be cited",
    question="Was lot 88 recalled?",
    answer="Yes, in May.",
    prompt=[RECALL],
)
async def citable_block():
    def register(lot: str) -> CitableBlock:
        """The register of recalls."""
        return CitableBlock(title="Register", source="register", content=[TextBlock(text=RECALL)])

    class Reads(Talker):
        """Shows the model what is in a citable block, as Anthropic's model does."""

        def _message(self, messages):
            flat = []
            for m in messages:
                blocks = [
                    TextBlock(text=f"<source title={b.title!r}>{b.content[0].text}</source>")
                    if isinstance(b, CitableBlock)
                    else b
                    for b in m.blocks
                ]
                flat.append(m.model_copy(update={"blocks": blocks}))
            return super()._message(flat)

    llm = Reads(reply=talker(call("register", lot="88"), "Yes, in May.").reply)
    await ask("Was lot 88 recalled?", llm, register)


@app(
    "JSON of a tool with escaped letters",
    question="Wo gibt es die Tabletten?",
    answer="In der Löwenapotheke in Köln.",
    prompt=["Löwenapotheke", "Köln"],
)
async def escaped_json():
    def pharmacies(place: str) -> str:
        """Pharmacies of a place."""
        return json.dumps({"name": "Löwenapotheke", "ort": "Köln"})

    llm = talker(call("pharmacies", place="Köln"), "In der Löwenapotheke in Köln.")
    await ask("Wo gibt es die Tabletten?", llm, pharmacies)


@app(
    "JSON of a tool with escaped letters around a model's answer",
    question="Was steht über die Lagerung da?",
    answer="Unter 25 Grad lagern, steht im Beipackzettel.",
    absent=["Kühl lagern, am besten im Kühlschrank, trocken."],
    chunks=["Die Tabletten sind unter 25 Grad zu lagern."],
)
async def escaped_answer():
    engine = index("Die Tabletten sind unter 25 Grad zu lagern.").as_query_engine(
        llm=writer("Kühl lagern, am besten im Kühlschrank, trocken.")
    )

    def leaflet(question: str) -> str:
        """Ask the leaflet."""
        return json.dumps({"antwort": str(engine.query(question)), "stand": "2024"})

    await ask(
        "Was steht über die Lagerung da?",
        talker(
            call("leaflet", question="Lagerung"), "Unter 25 Grad lagern, steht im Beipackzettel."
        ),
        leaflet,
    )


@app(
    "web hits as dictionaries",
    question="When does the ferry leave?",
    answer="At 7:40, says the harbour's page.",
    chunks=["The first ferry leaves at 7:40."],
    prompt=["https://harbour.example/times", "Bus 4 stops at the harbour."],
)
async def web_hits():
    def web_search(query: str) -> list[dict]:
        """Search the web."""
        return [
            {
                "title": "Ferry times",
                "url": "https://harbour.example/times",
                "content": "The first ferry leaves at 7:40.",
            },
            {
                "title": "Buses",
                "url": "https://bus.example",
                "content": "Bus 4 stops at the harbour.",
            },
        ]

    await ask(
        "When does the ferry leave?",
        talker(call("web_search", query="ferry"), "At 7:40, says the harbour's page."),
        web_search,
    )


@app(
    "one record of a database under a key",
    question="Where is order 77?",
    answer="Order 77 left Hamburg on 3 May and is due on 9 May.",
    prompt=["Hamburg", "2025-05-03", "2025-05-09"],
)
async def record():
    def order(number: int) -> dict:
        """An order."""
        return {"record": {"id": 77, "from": "Hamburg", "sent": "2025-05-03", "due": "2025-05-09"}}

    await ask(
        "Where is order 77?",
        talker(call("order", number=77), "Order 77 left Hamburg on 3 May and is due on 9 May."),
        order,
    )


@app(
    "a number from a calculator",
    question="What is 17 percent of 2300?",
    answer="It is 391.",
    prompt=["391.0"],
)
async def number():
    def multiply(a: float, b: float) -> float:
        """Multiply."""
        return a * b

    await ask(
        "What is 17 percent of 2300?",
        talker(call("multiply", a=2300, b=0.17), "It is 391."),
        multiply,
    )


@app(
    "a bank's tool that says what it has done",
    question="Please send 50 euros to Anna.",
    answer="Done: 50 euros went to Anna's account ending in 22.",
    chunks=["Successfully transferred 50.00 EUR to Anna Berg, account ending in 22."],
)
async def bank():
    def transfer(to: str, euros: float) -> str:
        """Transfer money."""
        return "Successfully transferred 50.00 EUR to Anna Berg, account ending in 22."

    await ask(
        "Please send 50 euros to Anna.",
        talker(
            call("transfer", to="Anna", euros=50),
            "Done: 50 euros went to Anna's account ending in 22.",
        ),
        transfer,
    )


@app(
    "a tool that keeps a note and one that reads it back",
    question="What is still open on my list?",
    answer="Only the rent is open.",
    prompt=["open: pay the rent"],
    absent=["I keep in mind: customer is forgetful."],
    allowed=["Saved."],
)
async def notes_read_back():
    kept = ["open: pay the rent"]

    def save(note: str) -> str:
        """Save a note."""
        kept.append(note)
        return "Saved."

    def read_notes() -> str:
        """All notes."""
        return "\n".join(kept)

    await ask(
        "What is still open on my list?",
        talker(
            call("save", note="I keep in mind: customer is forgetful."),
            call("read_notes"),
            "Only the rent is open.",
        ),
        save,
        read_notes,
    )


@app(
    "a tool that echoes what the model gave it",
    question="Plan my day.",
    answer="First the dentist at nine, then the office.",
    chunks=["Calendar: dentist at nine."],
    absent=["1. dentist 2. office 3. swimming with Max"],
)
async def echo():
    def calendar() -> str:
        """The calendar."""
        return "Calendar: dentist at nine."

    def write_plan(plan: str) -> str:
        """Write the plan down."""
        return f"The plan is now: {plan}"

    await ask(
        "Plan my day.",
        talker(
            call("calendar"),
            call("write_plan", plan="1. dentist 2. office 3. swimming with Max"),
            "First the dentist at nine, then the office.",
        ),
        calendar,
        write_plan,
    )


class Slot(BaseModel):
    """A free hour."""

    day: str
    hour: int
    doctor: str


@app(
    "a Pydantic object of a tool",
    question="When can I see Dr Weiss?",
    answer="On Thursday at 14 o'clock.",
    prompt=["Thursday", "14", "Weiss"],
)
async def pydantic_result():
    def free_slot(doctor: str) -> Slot:
        """The next free hour."""
        return Slot(day="Thursday", hour=14, doctor="Dr Weiss")

    await ask(
        "When can I see Dr Weiss?",
        talker(call("free_slot", doctor="Weiss"), "On Thursday at 14 o'clock."),
        free_slot,
    )


@app(
    "a tool output that says another thing to the model than it returns",
    question="Is there snow on the pass?",
    answer="Yes, 40 centimetres since last night.",
    prompt=["snow: 40 cm since last night"],
    absent=["internal sensor dump 0x3f"],
)
async def tool_output():
    def snow(place: str) -> ToolOutput:
        """Snow of a place."""
        return ToolOutput(
            content="snow: 40 cm since last night",
            tool_name="snow",
            raw_input={"place": place},
            raw_output={"dump": "internal sensor dump 0x3f"},
        )

    class Snow(BaseToolSpec):
        spec_functions = ("snow",)

        def snow(self, place: str) -> str:
            """Snow of a place."""
            return "snow: 40 cm since last night"

    tools = Snow().to_tool_list()
    await ask(
        "Is there snow on the pass?",
        talker(call("snow", place="pass"), "Yes, 40 centimetres since last night."),
        *tools,
    )


@app(
    "a callback that rewrites what a tool returned",
    question="Which number has Mrs Roth?",
    answer="Her number ends in 88.",
    prompt=["phone: ***88"],
    absent=["phone: 040 123 4588"],
)
async def callback():
    def contact(name: str) -> str:
        """A contact."""
        return "phone: 040 123 4588"

    tool = FunctionTool.from_defaults(contact, callback=lambda output: "phone: ***88")
    await ask(
        "Which number has Mrs Roth?",
        talker(call("contact", name="Roth"), "Her number ends in 88."),
        tool,
    )


@app(
    "a tool that ends the run with the answer in its arguments",
    question="Was lot 88 recalled?",
    answer="Lot 88 was recalled in May.",
    chunks=["Register: lot 88 recalled in May 2025."],
)
async def submit_answer():
    def register(lot: str) -> str:
        """The register."""
        return "Register: lot 88 recalled in May 2025."

    def submit_answer(answer: str, confidence: float) -> str:
        """Give the final answer."""
        return answer

    tool = FunctionTool.from_defaults(submit_answer, return_direct=True)
    await ask(
        "Was lot 88 recalled?",
        talker(
            call("register", lot="88"),
            call("submit_answer", answer="Lot 88 was recalled in May.", confidence=0.9),
        ),
        register,
        tool,
    )


@app(
    "a tool that ends the run and formats the answer",
    question="Was lot 88 recalled?",
    answer=("Lot 88 was recalled in May.", "All other lots are safe."),
    chunks=["Register: lot 88 recalled in May 2025."],
    invented=["All other lots are safe."],
)
async def final_answer():
    def register(lot: str) -> str:
        """The register."""
        return "Register: lot 88 recalled in May 2025."

    def final_answer(answer: str, advice: str) -> str:
        """Give the final answer."""
        return f"{answer}\n\n{advice}"

    tool = FunctionTool.from_defaults(final_answer, return_direct=True)
    await ask(
        "Was lot 88 recalled?",
        talker(
            call("register", lot="88"),
            call(
                "final_answer",
                answer="Lot 88 was recalled in May.",
                advice="All other lots are safe.",
            ),
        ),
        register,
        tool,
    )


@app(
    "a tool of plain code whose text is the whole answer",
    status=["no_answer", "not_rag"],
)
async def return_direct_plain():
    def opening_hours(day: str) -> str:
        """Opening hours."""
        return "Open from 9 to 18."

    tool = FunctionTool.from_defaults(opening_hours, return_direct=True)
    await ask("When are you open?", talker(call("opening_hours", day="today")), tool)


@app(
    "a tool whose text is an answer that a model wrote",
    question="Sum up the leaflet.",
    answer="Take two a day and keep them cool.",
    prompt=[DOSE, STORE],
    absent=["Summary: two tablets daily, cool storage, no alcohol."],
)
async def model_in_tool():
    inner = writer("Summary: two tablets daily, cool storage, no alcohol.")

    def summarize(name: str) -> str:
        """Sum a leaflet up."""
        return inner.complete(f"Sum up:\n{DOSE}\n{STORE}").text

    await ask(
        "Sum up the leaflet.",
        talker(call("summarize", name="leaflet"), "Take two a day and keep them cool."),
        summarize,
    )


@app(
    "an engine as a tool of an agent that reasons in text",
    question="How many tablets a day?",
    answer="Two of them.",
    chunks=[DOSE],
    absent=["Two tablets, before breakfast."],
)
async def react_engine():
    tool = QueryEngineTool.from_defaults(
        index(DOSE).as_query_engine(llm=writer("Two tablets, before breakfast.")),
        name="leaflet",
        description="The leaflet",
    )
    llm = writer(
        'Thought: I need the leaflet.\nAction: leaflet\nAction Input: {"input": "dose"}',
        "Thought: I can answer without using any more tools.\nAnswer: Two of them.",
    )
    await ask("How many tablets a day?", llm, tool, kind=ReActAgent)


@app(
    "a result of a tool in the form of an XML list",
    question="Which lots were recalled?",
    answer="Lots 88 and 91.",
    chunks=["Lot 88 was recalled in May.", "Lot 91 was recalled in June."],
)
async def xml():
    def recalls(year: int) -> str:
        """Recalls of a year."""
        items = "".join(f"<item>{t}</item>" for t in (RECALL, "Lot 91 was recalled in June."))
        return f"<results year='{year}'>{items}</results>"

    await ask(
        "Which lots were recalled?", talker(call("recalls", year=2025), "Lots 88 and 91."), recalls
    )


@app(
    "a list of 150 short rows of a tool",
    question="Which products are out of stock?",
    answer="Only article 149 is out of stock.",
    prompt=["article 7 in stock: 7", "article 149 in stock: 0"],
    allowed=["in stock"],
)
async def many_rows():
    def stock() -> list:
        """All stock."""
        return [f"article {n} in stock: {0 if n == 149 else n}" for n in range(150)]

    await ask(
        "Which products are out of stock?",
        talker(call("stock"), "Only article 149 is out of stock."),
        stock,
    )


@app(
    "an empty result and then a full one",
    question="Is there a pharmacy open now?",
    answer="The Stern pharmacy is open all night.",
    chunks=["Stern pharmacy: open all night."],
)
async def empty_then_full():
    def pharmacies(area: str) -> str:
        """Open pharmacies."""
        return "Stern pharmacy: open all night." if area == "city" else "[]"

    await ask(
        "Is there a pharmacy open now?",
        talker(
            call("pharmacies", area="village"),
            call("pharmacies", area="city"),
            "The Stern pharmacy is open all night.",
        ),
        pharmacies,
    )

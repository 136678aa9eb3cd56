"""Runs that the application frames by hand: a block, a function, a stream."""

from harness import app
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index_fakes import Shelf, following, talker, writer

BOILER = "The boiler needs a service every two years."
FILTER = "Its filter is cleaned each spring."


@app(
    "a block that is framed by hand",
    question="How often is the boiler serviced?",
    answer="Every two years. It costs 90 euros.",
    chunks=[BOILER],
    absent=["boiler service interval"],
    invented=["It costs 90 euros."],
)
def framed_block():
    llm = writer("boiler service interval", "Every two years. It costs 90 euros.")
    with following().run("How often is the boiler serviced?"):
        query = llm.complete("Search words?").text
        nodes = Shelf(BOILER).retrieve(query)
        llm.complete(f"{nodes[0].text}\nHow often is the boiler serviced?")


@app(
    "a block whose answer the application writes itself",
    question="What care does the boiler need?",
    answer="Care: Service every two years. Filter in spring.",
    chunks=[BOILER, FILTER],
)
def framed_answer():
    with following().run("What care does the boiler need?") as run:
        parts = []
        for text, said in ((BOILER, "Service every two years."), (FILTER, "Filter in spring.")):
            nodes = Shelf(text).retrieve("care")
            parts.append(talker(said).complete(f"{nodes[0].text}\nOne sentence on this.").text)
        run.answer = "Care: " + " ".join(parts)


@app(
    "a traced function that is asked twice",
    question="And the filter?",
    answer="In spring, every year.",
    chunks=[FILTER],
    absent=[BOILER, "Each second year."],
    cases=2,
)
def traced_function():
    llm = talker("Each second year.", "In spring, every year.")

    @following().trace
    def ask(question, text):
        nodes = Shelf(text).retrieve(question)
        return {"answer": llm.complete(f"{nodes[0].text}\n{question}").text}

    ask("How often is the boiler serviced?", BOILER)
    ask("And the filter?", FILTER)


@app(
    "a traced coroutine with an engine inside",
    question="How often is the boiler serviced?",
    answer="In short: every two years.",
    chunks=[BOILER],
    absent=["A service is due every two years, the note says."],
)
async def traced_coroutine():
    engine = RetrieverQueryEngine.from_args(
        Shelf(BOILER), llm=writer("A service is due every two years, the note says.")
    )

    @following().trace
    async def ask(question):
        said = await engine.aquery(question)
        return (await talker("In short: every two years.").acomplete(f"Shorten: {said}")).text

    await ask("How often is the boiler serviced?")


@app(
    "a traced generator of tokens",
    question="When is the filter cleaned?",
    answer="Each spring.",
    chunks=[FILTER],
)
def traced_generator():
    @following().trace
    def stream(question):
        nodes = Shelf(FILTER).retrieve(question)
        for piece in talker("Each spring.").stream_complete(f"{nodes[0].text}\n{question}"):
            yield piece.delta

    assert "".join(stream("When is the filter cleaned?")) == "Each spring."


LEASE = "Pets need the landlord's written consent. The rent is due on the third."
PETS = "Pets need written consent. Cats pay half."
BY_MODEL_ALONE = {
    "question": "May I keep a cat?",
    "answer": PETS,
    "prompt": [LEASE],
    "invented": ["Cats pay half."],
}


@app("a traced function with a model and texts of its own", **BY_MODEL_ALONE)
def only_a_model():
    @following().trace
    def ask(question):
        return writer(PETS).complete(f"Use this: {LEASE}\n{question}").text

    ask("May I keep a cat?")


@app("a framed block with a model and texts of its own", **BY_MODEL_ALONE)
def only_a_model_in_a_block():
    question = "May I keep a cat?"
    with following().run(question) as run:
        run.answer = talker(PETS).complete(f"{LEASE}\n{question}").text


@app("a traced asynchronous generator with a model and texts of its own", **BY_MODEL_ALONE)
async def only_a_model_streamed():
    @following().trace
    async def ask(question):
        stream = await talker(PETS).astream_complete(f"{LEASE}\n{question}")
        async for each in stream:
            yield each.delta

    assert "".join([piece async for piece in ask("May I keep a cat?")]) == PETS


@app("a traced function that another traced function calls", cases=1, **BY_MODEL_ALONE)
async def only_a_model_below():
    handler = following()

    @handler.trace
    async def complete(question):
        return (await writer(PETS).acomplete(f"{LEASE}\n{question}")).text

    @handler.trace
    async def ask(question):
        return await complete(question)

    await ask("May I keep a cat?")


@app("a traced function that asks no model", status=["not_rag", "no run"])
def no_model():
    @following().trace
    def ask(question):
        return f"Nobody knows {question}"

    ask("May I keep a cat?")

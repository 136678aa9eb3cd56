"""Texts that a model wrote as well as a document, tool or user; documents in other forms."""

import html
import json
import textwrap

from harness import app
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Shelf, call, index, memory, scored, talker, when, writer

from ragaliq import Monitor

FILM = "The film runs at eight in hall 2."
SNACK = "Popcorn is sold until the film begins."
SALE = "Tickets are sold online only."


class Own(CustomQueryEngine):
    """Retrieves, and asks its model with a prompt that `write` makes of nodes and question."""

    retriever: object
    llm: object
    write: object

    def custom_query(self, query_str):
        nodes = self.retriever.retrieve(query_str)
        return self.llm.complete(self.write(nodes, query_str)).text


@app(
    "an answer that quotes the document word by word",
    question="When does the film run?",
    answer=FILM,
    chunks=[FILM],
)
def verbatim():
    index(FILM).as_query_engine(llm=talker(FILM)).query("When does the film run?")


@app(
    "a draft that quotes the document word by word, refined with another",
    question="When does the film run, and what is there to eat?",
    answer="At eight in hall 2; popcorn is sold before.",
    chunks=[FILM, SNACK],
)
def verbatim_draft():
    llm = talker(FILM, "At eight in hall 2; popcorn is sold before.")
    RetrieverQueryEngine.from_args(Shelf(FILM, SNACK), llm=llm, response_mode="refine").query(
        "When does the film run, and what is there to eat?"
    )


@app(
    "sub-answers that quote their documents, beside the documents themselves",
    question="What do I need to know tonight?",
    answer="Buy online, come at eight, and eat before.",
    chunks=[FILM, SNACK, SALE],
)
def quotes_beside_documents():
    llm = writer(when({"Quotes": "Buy online, come at eight, and eat before.", "Quote from": FILM}))

    class Quoting(CustomQueryEngine):
        def custom_query(self, query_str):
            nodes = Shelf(FILM, SNACK, SALE).retrieve(query_str)
            quote = llm.complete(f"Quote from: {nodes[0].text}").text
            context = "\n".join(n.text for n in nodes)
            return llm.complete(f"Quotes: {quote}\nAll: {context}\n{query_str}").text

    Quoting().query("What do I need to know tonight?")


@app(
    "a class that a model gives, whose word is in the documents",
    question="How do I get in?",
    answer="Buy a ticket online.",
    chunks=[SALE, "All tickets carry a code."],
)
def word_of_class():
    llm = writer(when({"One word": "tickets"}, "Buy a ticket online."))

    class Classify(CustomQueryEngine):
        def custom_query(self, query_str):
            topic = llm.complete(f"One word for: {query_str}").text
            nodes = Shelf(SALE, "All tickets carry a code.").retrieve(topic)
            context = "\n".join(n.text for n in nodes)
            return llm.complete(f"Topic: {topic}\n{context}\n{query_str}").text

    Classify().query("How do I get in?")


@app(
    "a number that a model gives, which is in the documents as well",
    question="Which hall has more seats?",
    answer="Hall 2 has more, 300 seats.",
    chunks=["Hall 1 has 120 seats.", "Hall 2 has 300 seats."],
)
def number():
    llm = talker(when({"How many halls": "2"}, "Hall 2 has more, 300 seats."))

    class Count(CustomQueryEngine):
        def custom_query(self, query_str):
            count = llm.complete(f"How many halls does this need? {query_str}").text
            nodes = Shelf("Hall 1 has 120 seats.", "Hall 2 has 300 seats.").retrieve(query_str)
            context = "\n".join(n.text for n in nodes[: int(count)])
            return llm.complete(f"Halls: {count}\n{context}\n{query_str}").text

    Count().query("Which hall has more seats?")


@app(
    "a document of the same words as a rewritten query",
    question="And when?",
    answer="At eight o'clock.",
    chunks=["Start of the film: eight o'clock in hall 2"],
)
def query_like_document():
    llm = writer("Start of the film", "At eight o'clock.")

    class Rewrite(CustomQueryEngine):
        def custom_query(self, query_str):
            query = llm.complete(f"Rewrite: {query_str}").text
            nodes = Shelf("Start of the film: eight o'clock in hall 2").retrieve(query)
            return llm.complete(f"{nodes[0].text}\n{query_str}").text

    Rewrite().query("And when?")


@app(
    "an earlier answer that quotes a document which is found again",
    question="And in which hall?",
    answer="In hall 2.",
    chunks=[FILM],
    cases=2,
)
def found_again():
    engine = ContextChatEngine.from_defaults(
        Shelf(FILM), llm=talker(FILM, "In hall 2."), memory=memory()
    )
    engine.chat("When does the film run?")
    engine.chat("And in which hall?")


@app(
    "an answer of another user's run that the application keeps as a document",
    question="Is popcorn sold during the film?",
    answer="No, only until it begins.",
    chunks=["Earlier answer of our desk: popcorn is sold only before the film."],
    cases=2,
)
def kept_answer():
    first = index(SNACK).as_query_engine(
        llm=talker("Earlier answer of our desk: popcorn is sold only before the film.")
    )
    kept = str(first.query("When is popcorn sold?"))
    index(kept).as_query_engine(llm=talker("No, only until it begins.")).query(
        "Is popcorn sold during the film?"
    )


@app(
    "a note that the model copies from a document into a tool",
    question="Remind me of the film.",
    answer="I noted that it runs at eight in hall 2.",
    chunks=[FILM],
    allowed=["Noted"],
)
async def copied_into_tool():
    def programme(day: str) -> str:
        """The programme."""
        return FILM

    def remind(text: str) -> str:
        """Note a reminder."""
        return f"Noted: {text}"

    llm = talker(
        call("programme", day="today"),
        call("remind", text=FILM),
        "I noted that it runs at eight in hall 2.",
    )
    await FunctionAgent(tools=[programme, remind], llm=llm).run(
        "Remind me of the film.", memory=memory()
    )


@app(
    "two tools of which one repeats what the other found",
    question="When is the film?",
    answer="Eight o'clock, hall 2.",
    chunks=[FILM],
)
async def repeated_by_tool():
    def programme(day: str) -> str:
        """The programme."""
        return FILM

    def details(day: str) -> str:
        """The programme in detail."""
        return FILM

    llm = talker(
        [call("programme", day="today"), call("details", day="today")], "Eight o'clock, hall 2."
    )
    await FunctionAgent(tools=[programme, details], llm=llm).run(
        "When is the film?", memory=memory()
    )


@app(
    "a user who repeats what the assistant said",
    question="You said that popcorn is free all night, is that right?",
    answer="No: popcorn is sold until the film begins.",
    chunks=[SNACK],
    absent=["Popcorn is free all night."],
    cases=2,
)
def user_repeats():
    engine = ContextChatEngine.from_defaults(
        Shelf(SNACK),
        llm=talker("Popcorn is free all night.", "No: popcorn is sold until the film begins."),
        memory=memory(),
    )
    engine.chat("Tell me about popcorn.")
    engine.chat("You said that popcorn is free all night, is that right?")


@app(
    "a tool that echoes the question beside its results",
    question="What is sold at the cinema?",
    answer="Popcorn, until the film begins.",
    chunks=[SNACK],
)
async def echoes_question():
    def search(query: str) -> dict:
        """Search."""
        return {"query": "What is sold at the cinema?", "results": [SNACK], "took_ms": 12}

    llm = talker(
        call("search", query="What is sold at the cinema?"), "Popcorn, until the film begins."
    )
    await FunctionAgent(tools=[search], llm=llm).run("What is sold at the cinema?", memory=memory())


# --- documents in other forms ---------------------------------------------------------------------


def form(name, write, *, chunks=(FILM, SNACK), **truth):
    """An application whose prompt has the documents in a form of its own."""

    @app(
        name,
        question="What is on tonight?",
        answer="A film at eight, with popcorn before.",
        chunks=list(chunks),
        **truth,
    )
    def run():
        Own(
            retriever=Shelf(*chunks),
            llm=talker("A film at eight, with popcorn before."),
            write=write,
        ).query("What is on tonight?")

    return run


texts = "{}\n\nQuestion: {}".format

form(
    "documents that are indented",
    lambda nodes, q: texts(textwrap.indent("\n".join(n.text for n in nodes), "    "), q),
)
form(
    "documents quoted line by line",
    lambda nodes, q: texts("\n".join(f"> {n.text}" for n in nodes), q),
)
form(
    "documents in XML with attributes",
    lambda nodes, q: texts(
        "".join(f"<doc index='{i}' score='0.8'>{n.text}</doc>" for i, n in enumerate(nodes)), q
    ),
)
form(
    "documents as the repr of a list",
    lambda nodes, q: texts([n.text for n in nodes], q),
    chunks=("The film's hall isn't open before eight.", SNACK),
)
form(
    "documents escaped for HTML",
    lambda nodes, q: texts(html.escape("\n".join(n.text for n in nodes)), q),
    chunks=("Popcorn & tea cost < 5 euros.",),
)
form(
    "documents as JSON with escapes",
    lambda nodes, q: texts(json.dumps([n.text for n in nodes]), q),
    chunks=("Das Café öffnet um acht.", "Für Schüler gibt es Süßes."),
)
form(
    "documents joined on one line",
    lambda nodes, q: texts(" | ".join(n.text for n in nodes), q),
)
form(
    "documents wrapped at forty letters",
    lambda nodes, q: texts(textwrap.fill(" ".join(n.text for n in nodes), 40), q),
)
form(
    "documents with their nodes' representation",
    lambda nodes, q: texts("\n".join(str(n) for n in nodes), q),
)
form(
    "documents as a table",
    lambda nodes, q: texts("\n".join(f"| {i} | {n.text} | 0.8 |" for i, n in enumerate(nodes)), q),
)
form(
    "documents after the question",
    lambda nodes, q: f"{q}\n\nUse this:\n" + "\n".join(n.text for n in nodes),
)


@app(
    "passages that overlap",
    question="What happens at eight and after?",
    answer="The film begins at eight, and at ten the bar opens.",
    chunks=[
        "Doors open at seven. The film begins at eight.",
        "The film begins at eight. The bar opens at ten.",
    ],
)
def overlapping():
    RetrieverQueryEngine.from_args(
        Shelf(
            "Doors open at seven. The film begins at eight.",
            "The film begins at eight. The bar opens at ten.",
        ),
        llm=writer("The film begins at eight, and at ten the bar opens."),
    ).query("What happens at eight and after?")


@app(
    "one passage that is inside another",
    question="When does the film run?",
    answer="It starts at eight.",
    chunks=["The film runs at eight in hall 2. Latecomers wait outside."],
)
def inside_another():
    RetrieverQueryEngine.from_args(
        Shelf("The film runs at eight in hall 2. Latecomers wait outside.", FILM),
        llm=talker("It starts at eight."),
    ).query("When does the film run?")


@app(
    "a document of forty pages",
    question="Who built the cinema?",
    answer="Otto Lang built it.",
    chunks=["The cinema was built by Otto Lang."],
    prompt=["is about the seats in row 399"],
)
def forty_pages():
    pages = " ".join(f"Sentence {n} is about the seats in row {n}." for n in range(1500))
    RetrieverQueryEngine.from_args(
        Shelf(f"The cinema was built by Otto Lang. {pages}"), llm=writer("Otto Lang built it.")
    ).query("Who built the cinema?")


@app(
    "the same text with two kinds of metadata",
    question="Where was this announced?",
    answer="On the poster and on the web.",
    chunks=[FILM],
    prompt=["place: poster", "place: web"],
)
def two_places():
    RetrieverQueryEngine.from_args(
        Shelf(scored(FILM, metadata={"place": "poster"}), scored(FILM, metadata={"place": "web"})),
        llm=talker("On the poster and on the web."),
    ).query("Where was this announced?")


# --- what the application itself says -------------------------------------------------------------


@app(
    "context that an engine of one's own adds",
    question="When does the film run?",
    answer="Tonight at eight.",
    chunks=["Programme of tonight: film at eight."],
)
def added_by_engine():
    class Adding(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            programme = "Programme of tonight: film at eight."
            Monitor.add_context(programme)
            return self.llm.complete(f"{programme}\n{query_str}").text

    Adding(llm=writer("Tonight at eight.")).query("When does the film run?")


@app(
    "context that a workflow's step adds",
    question="When does the film run?",
    answer="It runs tonight.",
    chunks=["Programme of tonight: film at eight.", SNACK],
)
async def added_by_step():
    class Desk(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(SNACK).aretrieve(ev.query)
            Monitor.add_context("Programme of tonight: film at eight.")
            said = await talker("It runs tonight.").acomplete(
                f"Programme of tonight: film at eight.\n{nodes[0].text}\n{ev.query}"
            )
            return StopEvent(result=said.text)

    await Desk(timeout=20).run(query="When does the film run?")


@app(
    "context that a tool adds",
    question="When does the film run?",
    answer="It runs at eight sharp.",
    chunks=["Programme of tonight: film at eight."],
    prompt=["8 pm"],
)
async def added_by_tool():
    def programme(day: str) -> str:
        """The programme."""
        Monitor.add_context("Programme of tonight: film at eight.")
        return "8 pm. Programme of tonight: film at eight."

    llm = talker(call("programme", day="today"), "It runs at eight sharp.")
    await FunctionAgent(tools=[programme], llm=llm).run("When does the film run?", memory=memory())

"""Texts in prompts beside the documents: profiles, prices, memories, examples."""

import datetime
import json

from harness import app
from llama_index.core import PromptTemplate
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.prompts import RichPromptTemplate
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Shelf, call, index, memory, scored, talker, writer

RULE = "Members may borrow five books for four weeks."
FINE = "Every day of delay costs 20 cents a book."


def engine(*texts, said, template=None, **settings):
    if template is not None:
        settings["text_qa_template"] = template
    return RetrieverQueryEngine.from_args(Shelf(*texts), llm=talker(said), **settings)


@app(
    "today's date in the prompt",
    question="When is my book from 1 May due?",
    answer="On 29 May, in nine days.",
    chunks=[RULE],
    prompt=["Today is 20 May 2025."],
)
def date():
    today = datetime.date(2025, 5, 20)
    template = PromptTemplate(
        f"Today is {today:%d %B %Y}.\nRules:\n{{context_str}}\n\nQuestion: {{query_str}}"
    )
    engine(RULE, said="On 29 May, in nine days.", template=template).query(
        "When is my book from 1 May due?"
    )


@app(
    "a customer's profile by a function of the template",
    question="How many more books may I take?",
    answer="Two more, because you have three already.",
    chunks=[RULE],
    prompt=["Borrower Ida Holm has 3 books out."],
)
def profile():
    template = PromptTemplate(
        "{profile}\n{context_str}\n{query_str}",
        function_mappings={"profile": lambda **given: "Borrower Ida Holm has 3 books out."},
    )
    engine(RULE, said="Two more, because you have three already.", template=template).query(
        "How many more books may I take?"
    )


@app(
    "a prompt in Jinja with a loop over rows",
    question="Which fee is higher?",
    answer="The fee for lost cards, 10 euros.",
    chunks=[FINE],
    prompt=["lost card: 10 euros", "copy: 10 cents"],
)
def jinja():
    template = RichPromptTemplate(
        "Fees:\n{% for name, fee in fees %}{{ name }}: {{ fee }}\n{% endfor %}\n"
        "{{ context_str }}\n{{ query_str }}"
    ).partial_format(fees=[("lost card", "10 euros"), ("copy", "10 cents")])
    engine(FINE, said="The fee for lost cards, 10 euros.", template=template).query(
        "Which fee is higher?"
    )


@app(
    "examples in the prompt, which are no facts about the question",
    question="How long may I keep a book?",
    answer="Four weeks.",
    chunks=[RULE],
    absent=["For four weeks, as a guess."],
)
def few_shot():
    template = PromptTemplate(
        "Q: How long may I keep a film?\nA: One week.\n\n{context_str}\n\nQ: {query_str}\nA:"
    )
    llm = writer("For four weeks, as a guess.", "Four weeks.")

    class Twice(CustomQueryEngine):
        """Asks the model once more with its first answer."""

        def custom_query(self, query_str):
            nodes = Shelf(RULE).retrieve(query_str)
            first = llm.complete(template.format(context_str=nodes[0].text, query_str=query_str))
            return llm.complete(
                f"Shorten the answer {first.text!r}\nRules: {nodes[0].text}\nQ: {query_str}"
            ).text

    Twice().query("How long may I keep a book?")


@app(
    "a weather service that the engine asks beside its search",
    question="Is it a good day to bring my books back?",
    answer="Yes: it stays dry, and a delay would cost 20 cents a book.",
    chunks=[FINE],
    prompt=["Forecast: dry, 18 degrees"],
)
def service():
    class Own(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            nodes = Shelf(FINE).retrieve(query_str)
            forecast = {"Forecast": "dry, 18 degrees"}
            prompt = f"{forecast}\n{nodes[0].text}\n{query_str}"
            return self.llm.complete(prompt).text

    said = "Yes: it stays dry, and a delay would cost 20 cents a book."
    Own(llm=talker(said)).query("Is it a good day to bring my books back?")


@app(
    "memories of a store of the application's own",
    question="Which book should I take next?",
    answer="The new crime novel, because you like Mankell; you may keep it for four weeks.",
    chunks=[RULE],
    prompt=["Ida likes crime novels by Mankell."],
)
def memories():
    store = {"ida": ["Ida likes crime novels by Mankell."]}

    def remembered(**given):
        return "\n".join(store["ida"])

    template = PromptTemplate(
        "Memories:\n{memories}\n\nRules:\n{context_str}\n\n{query_str}",
        function_mappings={"memories": remembered},
    )
    said = "The new crime novel, because you like Mankell; you may keep it for four weeks."
    engine(RULE, said=said, template=template).query("Which book should I take next?")


@app(
    "metadata of nodes that the engine writes under the documents",
    question="Who wrote the rule, and when?",
    answer="Mrs Falk wrote it in 2019.",
    chunks=[RULE],
    prompt=["Falk", "2019"],
)
def metadata_below():
    class Own(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            found = Shelf(scored(RULE, metadata={"author": "Mrs Falk", "year": 2019})).retrieve(
                query_str
            )
            texts = "\n".join(f"[{n}] {each.text}" for n, each in enumerate(found, 1))
            notes = "\n".join(
                f"[{n}] by {each.metadata['author']}, {each.metadata['year']}"
                for n, each in enumerate(found, 1)
            )
            return self.llm.complete(f"{texts}\n\nSources:\n{notes}\n\n{query_str}").text

    Own(llm=writer("Mrs Falk wrote it in 2019.")).query("Who wrote the rule, and when?")


@app(
    "a note of an editor between two documents",
    question="What happens if I am late?",
    answer="20 cents a day and book, but the first day is free now.",
    chunks=[RULE, FINE],
    prompt=["Editor: since March the first day is free."],
)
def note_between():
    class Own(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            first, second = Shelf(RULE, FINE).retrieve(query_str)
            note = "Editor: since March the first day is free."
            prompt = f"{first.text}\n{note}\n{second.text}\n{query_str}"
            return self.llm.complete(prompt).text

    said = "20 cents a day and book, but the first day is free now."
    Own(llm=talker(said)).query("What happens if I am late?")


class Titled(Event):
    hits: list[dict]


@app(
    "hits as dictionaries in a workflow's event",
    question="Which novel is about bees?",
    answer="The History of Bees by Maja Lunde, shelf 12.",
    prompt=["The History of Bees", "Maja Lunde", "shelf 12"],
)
async def hits():
    class Catalogue(Workflow):
        @step
        async def search(self, ctx: Context, ev: StartEvent) -> Titled:
            await ctx.store.set("question", ev.question)
            return Titled(
                hits=[
                    {"title": "The History of Bees", "author": "Maja Lunde", "place": "shelf 12"},
                    {"title": "Wasps", "author": "N. N.", "place": "shelf 3"},
                ]
            )

        @step
        async def answer(self, ctx: Context, ev: Titled) -> StopEvent:
            question = await ctx.store.get("question")
            lines = "\n".join(f"{h['title']} ({h['author']}), {h['place']}" for h in ev.hits)
            said = await talker("The History of Bees by Maja Lunde, shelf 12.").acomplete(
                f"Catalogue:\n{lines}\n\n{question}"
            )
            return StopEvent(result=said.text)

    await Catalogue(timeout=20).run(question="Which novel is about bees?")


@app(
    "a system prompt of the model itself",
    question="May I borrow six books?",
    answer="No, five; ask Mr Brandt for exceptions.",
    chunks=[RULE],
    prompt=["Exceptions are granted by Mr Brandt."],
)
def system_prompt_of_model():
    class Own(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            nodes = Shelf(RULE).retrieve(query_str)
            return (
                self.llm.chat(
                    [
                        ChatMessage(role="system", content="Exceptions are granted by Mr Brandt."),
                        ChatMessage(role="user", content=f"{nodes[0].text}\n\n{query_str}"),
                    ]
                ).message.content
                or ""
            )

    Own(llm=talker("No, five; ask Mr Brandt for exceptions.")).query("May I borrow six books?")


@app(
    "a context template of a chat with a fact in it",
    question="Are you open at eight?",
    answer="No, from nine; books are lent for four weeks.",
    chunks=[RULE],
    prompt=["Open from 9 to 17."],
)
def context_template():
    ContextChatEngine.from_defaults(
        Shelf(RULE),
        llm=talker("No, from nine; books are lent for four weeks."),
        memory=memory(),
        context_template="Library of Lund. Open from 9 to 17.\n{context_str}",
    ).chat("Are you open at eight?")


@app(
    "an agent whose tool gives a record and whose prompt gives another",
    question="How much do I owe?",
    answer="60 cents for three days.",
    chunks=["Loan 5: three days late."],
    prompt=["Price list: 20 cents a day"],
)
async def agent_prompt():
    def loan(number: int) -> str:
        """A loan."""
        return "Loan 5: three days late."

    await FunctionAgent(
        tools=[loan],
        llm=talker(call("loan", number=5), "60 cents for three days."),
        system_prompt="Be brief. Price list: 20 cents a day",
    ).run("How much do I owe?", memory=memory())


@app(
    "a retriever that writes its own header over each node",
    question="What does a delay cost?",
    answer="20 cents a day, by section 7.",
    chunks=[FINE],
    prompt=["Section 7 of the statutes"],
)
def header():
    class Headed(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [
                NodeWithScore(
                    node=TextNode(text=f"## Section 7 of the statutes\n{FINE}"), score=0.9
                )
            ]

    RetrieverQueryEngine.from_args(Headed(), llm=writer("20 cents a day, by section 7.")).query(
        "What does a delay cost?"
    )


@app(
    "documents cut to their first sentence by the prompt",
    question="What may members borrow?",
    answer="Five books.",
    chunks=["Members may borrow five books."],
    absent=["Films are lent for a week."],
)
def cut():
    class Own(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            nodes = Shelf("Members may borrow five books. Films are lent for a week.").retrieve(
                query_str
            )
            first = nodes[0].text.split(". ")[0] + "."
            return self.llm.complete(f"{first}\n{query_str}").text

    Own(llm=talker("Five books.")).query("What may members borrow?")


@app(
    "documents in upper case in the prompt",
    question="What does a delay cost?",
    answer="20 cents a day for each book.",
    chunks=[FINE],
)
def upper_case():
    class Own(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            nodes = Shelf(FINE).retrieve(query_str)
            return self.llm.complete(f"{nodes[0].text.upper()}\n{query_str}").text

    Own(llm=writer("20 cents a day for each book.")).query("What does a delay cost?")


@app(
    "documents as a JSON list in the prompt",
    question="What are the rules?",
    answer="Five books for four weeks; a delay costs 20 cents.",
    chunks=[RULE, FINE],
)
def as_json():
    class Own(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            nodes = Shelf(RULE, FINE).retrieve(query_str)
            listed = json.dumps([{"id": n.node_id[:4], "text": n.text} for n in nodes])
            return self.llm.complete(f"{listed}\n{query_str}").text

    Own(llm=talker("Five books for four weeks; a delay costs 20 cents.")).query(
        "What are the rules?"
    )


@app(
    "a list of 150 documents in one prompt",
    question="Which shelf has poetry?",
    answer="Shelf 149 has poetry.",
    chunks=["Shelf 149: poetry.", "Shelf 3: topic number 3."],
    allowed=["topic number"],
)
def many_documents():
    texts = [f"Shelf {n}: topic number {n}." for n in range(149)] + ["Shelf 149: poetry."]
    RetrieverQueryEngine.from_args(Shelf(*texts), llm=writer("Shelf 149 has poetry.")).query(
        "Which shelf has poetry?"
    )


@app(
    "the same document found twice",
    question="What does a delay cost?",
    answer="20 cents.",
    chunks=[FINE],
)
def twice():
    engine(FINE, FINE, said="20 cents.").query("What does a delay cost?")


@app(
    "a document that quotes the question",
    question="May I lend my card to a friend?",
    answer="No, cards are personal.",
    chunks=[
        "Frequent question: may I lend my card to a friend? No, cards are personal to the member."
    ],
)
def quotes_question():
    text = (
        "Frequent question: may I lend my card to a friend? No, cards are personal to the member."
    )
    index(text).as_query_engine(llm=talker("No, cards are personal.")).query(
        "May I lend my card to a friend?"
    )

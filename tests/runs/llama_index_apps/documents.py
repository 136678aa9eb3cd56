"""Uploaded files: "ask your PDF", in engines, workflows, functions and messages."""

import io
from contextlib import redirect_stdout

from harness import app
from llama_index.core import Document, SummaryIndex, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, DocumentBlock, TextBlock
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_fakes import Talker, WordEmbedding, call, memory, talker, writer

dispatcher = get_dispatcher(__name__)

CONTRACT = (
    "Rental contract between Mr Blum and the firm Carpark. The van is rented from 3 to 9 June. "
    "The rent is 40 euros a day. Damage up to 500 euros is borne by Mr Blum. "
    "The van must be returned with a full tank."
)
REPORT = "Weather report of 4 June: hail as large as cherries fell on the town at noon."


@app(
    "an upload that is indexed and asked",
    question="Who pays for a scratch of 200 euros?",
    answer="Mr Blum pays, because damage up to 500 euros is his.",
    chunks=[CONTRACT],
)
def indexed_upload():
    VectorStoreIndex.from_documents(
        [Document(text=CONTRACT, metadata={})], embed_model=WordEmbedding()
    ).as_query_engine(llm=talker("Mr Blum pays, because damage up to 500 euros is his.")).query(
        "Who pays for a scratch of 200 euros?"
    )


@app(
    "an upload that goes through a pipeline first",
    question="What does the van cost a day?",
    answer="40 euros a day. Fuel is included.",
    chunks=["The rent is 40 euros a day."],
    invented=["Fuel is included."],
)
def pipeline():
    with redirect_stdout(io.StringIO()):  # LlamaIndex prints that the pieces are small
        nodes = IngestionPipeline(
            transformations=[SentenceSplitter(chunk_size=40, chunk_overlap=0), WordEmbedding()]
        ).run(documents=[Document(text=CONTRACT)])
    VectorStoreIndex(nodes, embed_model=WordEmbedding()).as_query_engine(
        similarity_top_k=1, llm=writer("40 euros a day. Fuel is included.")
    ).query("What does the van cost a day?")


@app(
    "a summary of a whole upload",
    question="Summarise the document.",
    answer="A van is rented for a week in June at 40 euros a day.",
    chunks=[CONTRACT],
)
def summary():
    SummaryIndex.from_documents([Document(text=CONTRACT)]).as_query_engine(
        response_mode="tree_summarize",
        llm=talker("A van is rented for a week in June at 40 euros a day."),
    ).query("Summarise the document.")


@app(
    "a workflow that is given documents beside the question",
    question="Who pays for the hail damage of 450 euros?",
    answer="Mr Blum: the contract leaves damage up to 500 euros with him.",
    chunks=[CONTRACT, REPORT],
)
async def documents_in_start_event():
    class Ask(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            context = "\n\n".join(document.text for document in ev.documents)
            said = await talker(
                "Mr Blum: the contract leaves damage up to 500 euros with him."
            ).acomplete(f"Documents:\n{context}\n\nQuestion: {ev.question}")
            return StopEvent(result=said.text)

    await Ask(timeout=20).run(
        question="Who pays for the hail damage of 450 euros?",
        documents=[Document(text=CONTRACT), Document(text=REPORT)],
    )


@app(
    "a workflow that is given a file's text under a key of its own",
    question="When must the van be back?",
    answer="On 9 June, with a full tank.",
    prompt=[CONTRACT],
)
async def file_text():
    class Ask(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            said = await writer("On 9 June, with a full tank.").acomplete(
                f"{ev.file_text}\n\n{ev.user_question}"
            )
            return StopEvent(result=said.text)

    await Ask(timeout=20).run(user_question="When must the van be back?", file_text=CONTRACT)


@app(
    "a workflow that is given texts by file name",
    question="Was there hail while the van was rented?",
    answer="Yes, on 4 June.",
    prompt=[CONTRACT, REPORT],
)
async def texts_by_name():
    class Ask(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            context = "\n".join(f"## {name}\n{text}" for name, text in ev.context.items())
            said = await talker("Yes, on 4 June.").acomplete(f"{context}\n\nQ: {ev.query}")
            return StopEvent(result=said.text)

    await Ask(timeout=20).run(
        query="Was there hail while the van was rented?",
        context={"contract.pdf": CONTRACT, "weather.txt": REPORT},
    )


class Parsed(Event):
    pages: list[str]


@app(
    "a workflow that parses an upload into pages",
    question="What is the rent?",
    answer="40 euros a day.",
    prompt=["The rent is 40 euros a day"],
)
async def parsed():
    class Ask(Workflow):
        @step
        async def parse(self, ctx: Context, ev: StartEvent) -> Parsed:
            await ctx.store.set("question", ev.question)
            data = io.BytesIO(ev.pdf).read().decode()
            return Parsed(pages=[f"{page}." for page in data.split(". ")])

        @step
        async def answer(self, ctx: Context, ev: Parsed) -> StopEvent:
            question = await ctx.store.get("question")
            said = await talker("40 euros a day.").acomplete("\n".join([*ev.pages, question]))
            return StopEvent(result=said.text)

    await Ask(timeout=20).run(question="What is the rent?", pdf=CONTRACT.encode())


@app(
    "a function under the dispatcher's span with a document",
    question="What is the rent?",
    answer="The rent is 40 euros daily.",
    prompt=[CONTRACT],
)
def span_with_document():
    @dispatcher.span
    def ask_file(question, document):
        return writer("The rent is 40 euros daily.").complete(f"{document}\n---\n{question}").text

    ask_file("What is the rent?", CONTRACT)


class AskFile(CustomQueryEngine):
    """Knows one file, which it puts into every prompt."""

    file: str
    llm: object

    def custom_query(self, query_str):
        return self.llm.complete(f"File:\n{self.file}\n\nQuestion: {query_str}").text


@app(
    "an engine that puts its whole file into the prompt",
    question="How must the van be returned?",
    answer="With a full tank. It must be washed.",
    prompt=[CONTRACT],
    invented=["It must be washed."],
    status="not_rag",
)
def whole_file():
    AskFile(file=CONTRACT, llm=talker("With a full tank. It must be washed.")).query(
        "How must the van be returned?"
    )


class Reads(Talker):
    """Reads the files in a message, as the providers' models do."""

    def _message(self, messages):
        flat = []
        for message in messages:
            blocks = [
                TextBlock(text=block.data.decode()) if isinstance(block, DocumentBlock) else block
                for block in message.blocks
            ]
            flat.append(message.model_copy(update={"blocks": blocks}))
        return super()._message(flat)


@app(
    "a file as a block of the user's message to an agent",
    question="What happens on 9 June?",
    answer="The van goes back on 9 June; the depot opens at 7.",
    chunks=["The depot opens at 7."],
)
async def file_block():
    # The file's bytes are for the model; a text handler cannot see what it read in them.
    def hours() -> str:
        """Opening hours of the depot."""
        return "The depot opens at 7."

    llm = Reads(
        reply=talker(call("hours"), "The van goes back on 9 June; the depot opens at 7.").reply
    )
    message = ChatMessage(
        role="user",
        blocks=[
            DocumentBlock(data=CONTRACT.encode(), document_mimetype="text/plain", title="contract"),
            TextBlock(text="What happens on 9 June?"),
        ],
    )
    await FunctionAgent(tools=[hours], llm=llm).run(message, memory=memory())


@app(
    "a file as a text block before the question",
    question="What is the rent?",
    answer="It is 40 euros for each day.",
    chunks=["VAT is 19 percent."],
    prompt=[CONTRACT],
)
async def text_block():
    def vat() -> str:
        """Value added tax."""
        return "VAT is 19 percent."

    message = ChatMessage(
        role="user", blocks=[TextBlock(text=CONTRACT), TextBlock(text="What is the rent?")]
    )
    llm = talker(call("vat"), "It is 40 euros for each day.")
    await FunctionAgent(tools=[vat], llm=llm).run(message, memory=memory())


@app(
    "a file pasted in an earlier message of an agent's chat",
    question="So who pays the hail damage?",
    answer="Mr Blum, up to 500 euros; the hail fell at noon.",
    chunks=[REPORT],
    prompt=[CONTRACT],
    absent=["Thanks, I have read your contract carefully."],
)
async def pasted_before():
    def weather(day: str) -> str:
        """Weather of a day."""
        return REPORT

    history = [
        ChatMessage(role="user", content=f"Here is my contract:\n{CONTRACT}"),
        ChatMessage(role="assistant", content="Thanks, I have read your contract carefully."),
    ]
    llm = talker(call("weather", day="4 June"), "Mr Blum, up to 500 euros; the hail fell at noon.")
    await FunctionAgent(tools=[weather], llm=llm).run(
        "So who pays the hail damage?", chat_history=history, memory=memory()
    )

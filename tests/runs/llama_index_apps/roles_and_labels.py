"""Documents and questions under roles and labels of the application's own."""

from harness import app
from llama_index.core import PromptTemplate
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.schema import MetadataMode
from llama_index.core.workflow import (
    Event,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from llama_index_fakes import Shelf, talker, writer


@app(
    "documents in an assistant's message of the application's",
    question="How is felt made?",
    answer="Felt is made of wet wool that is rubbed.",
    chunks=["Wet wool that is rubbed becomes felt."],
)
def assistant():
    nodes = Shelf("Wet wool that is rubbed becomes felt.").retrieve("How is felt made?")
    talker("Felt is made of wet wool that is rubbed.").chat(
        [
            ChatMessage(role="assistant", content=f"I found this:\n{nodes[0].text}"),
            ChatMessage(role="user", content="How is felt made?"),
        ]
    )


@app(
    "documents in a developer's message",
    question="Is cork recyclable?",
    answer="Yes, shops collect cork.",
    chunks=["Used corks are collected by many shops."],
)
def developer():
    nodes = Shelf("Used corks are collected by many shops.").retrieve("cork")
    talker("Yes, shops collect cork.").chat(
        [
            ChatMessage(role=MessageRole.DEVELOPER, content=f"Knowledge:\n{nodes[0].text}"),
            ChatMessage("Is cork recyclable?"),
        ]
    )


@app(
    "documents in a tool's message that the application writes",
    question="What colour is the tram?",
    answer="The tram is yellow.",
    chunks=["Trams of the town are yellow since 1988."],
)
def tool_message():
    nodes = Shelf("Trams of the town are yellow since 1988.").retrieve("What colour is the tram?")
    talker("The tram is yellow.").chat(
        [
            ChatMessage("What colour is the tram?"),
            ChatMessage(
                role=MessageRole.TOOL,
                content=nodes[0].get_content(),
                additional_kwargs={"tool_call_id": "1"},
            ),
        ]
    )


@app(
    "keywords for the search, the user's words in the chat",
    question="How do I get my deposit back",
    answer="Return the key, and the deposit is paid within a week.",
    chunks=["Deposits are paid back within a week of the key's return."],
)
def keywords():
    nodes = Shelf("Deposits are paid back within a week of the key's return.").retrieve("deposit")
    talker("Return the key, and the deposit is paid within a week.").chat(
        [
            ChatMessage(role="system", content=f"Knowledge:\n{nodes[0].text}"),
            ChatMessage("How do I get my deposit back"),
        ]
    )


@app(
    "keywords for the search, the user's words after a label in a completion",
    question="How do I get my deposit back?",
    answer="Return the key, and the deposit is paid within a week.",
    chunks=["Deposits are paid back within a week of the key's return."],
)
def labelled():
    nodes = Shelf("Deposits are paid back within a week of the key's return.").retrieve("deposit")
    writer("Return the key, and the deposit is paid within a week.").complete(
        f"Knowledge:\n{nodes[0].text}\n\nTenant: How do I get my deposit back?\nYou:"
    )


@app(
    "a workflow that searches with keywords a model wrote and asks with the user's words",
    question="Why does my dough not rise?",
    answer="The yeast was too hot: it dies at 50 degrees.",
    chunks=["Yeast dies at 50 degrees."],
    absent=["dough, yeast, temperature"],
)
async def workflow_keywords():
    class Got(Event):
        nodes: list
        question: str

    class Flow(Workflow):
        @step
        async def search(self, ev: StartEvent) -> Got:
            query = await talker("dough, yeast, temperature").acomplete(
                f"Keywords for: {ev.message}"
            )
            return Got(
                nodes=await Shelf("Yeast dies at 50 degrees.").aretrieve(str(query)),
                question=ev.message,
            )

        @step
        async def answer(self, ev: Got) -> StopEvent:
            text = "\n".join(n.text for n in ev.nodes)
            reply = await talker("The yeast was too hot: it dies at 50 degrees.").achat(
                [
                    ChatMessage(role="system", content=f"Baking notes:\n{text}"),
                    ChatMessage(ev.question),
                ]
            )
            return StopEvent(result={"answer": reply.message.content, "n_sources": len(ev.nodes)})

    await Flow(timeout=10).run(message="Why does my dough not rise?")


@app(
    "a function that is the whole app, with a prompt template and a formatter",
    question="Which bus goes to the quarry?",
    answer="Bus 14 goes to the quarry.",
    chunks=["Bus 14: station - quarry.", "Bus 15: station - lake."],
    prompt=["Today is Tuesday, a school holiday."],
)
def template():
    prompt = PromptTemplate(
        "Today is Tuesday, a school holiday.\n{context_str}\nUsing only this, answer:\n{query_str}",
        function_mappings={
            "context_str": lambda **kw: "\n".join(
                n.get_content(MetadataMode.LLM) for n in kw["nodes"]
            )
        },
    )
    nodes = Shelf("Bus 14: station - quarry.", "Bus 15: station - lake.").retrieve("quarry")
    llm = writer("Bus 14 goes to the quarry.")
    llm.complete(prompt.format(nodes=nodes, query_str="Which bus goes to the quarry?"))

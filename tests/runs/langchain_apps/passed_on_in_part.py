"""Words of models that come back cut, numbered, drawn or without the others."""

from harness import app
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough, chain
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import calling, chat, finding, joined


@app(
    "a file that the model wrote and reads with line numbers",
    question="Compare the two lamps.",
    answer="The Aurora weighs 410 g, the Nova 200 g.",
    chunks=["Nova: 200 g"],
    absent=["Aurora 410 g"],
    allowed=["written"],
    invented=["The Aurora weighs 410 g"],
)
def numbered(config):
    files = {}

    @tool
    def write_file(path: str, content: str) -> str:
        """Write."""
        files[path] = content
        return "written"

    @tool
    def read_file(path: str) -> str:
        """Read."""
        return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(files[path].splitlines(), 1))

    lamps = create_retriever_tool(finding("Nova: 200 g"), "lamps", "Lamps.")
    agent = create_agent(
        chat(
            calling("lamps", query="Nova"),
            calling("write_file", path="n.md", content="# Lamps\nAurora 410 g\nNova 200 g"),
            calling("read_file", path="n.md"),
            "The Aurora weighs 410 g, the Nova 200 g.",
        ),
        [lamps, write_file, read_file],
    )
    agent.invoke({"messages": [HumanMessage("Compare the two lamps.")]}, config)


@app(
    "a colleague's reply that the tool cuts to a number of letters",
    question="How heavy is the Aurora?",
    answer="The Aurora weighs 410 grams.",
    chunks=["Aurora: a lamp of brass."],
    absent=["The Aurora weighs 410"],
    invented=["The Aurora weighs 410 grams."],
)
def cut_reply(config):
    helper = (
        {"context": finding("Aurora: a lamp of brass.") | joined, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("{context}\n{question}")
        | chat("The Aurora weighs 410 grams and is made of brass.")
        | StrOutputParser()
    )

    @tool
    def colleague(question: str) -> str:
        """Ask."""
        return helper.invoke(question)[:25] + "..."

    agent = create_agent(
        chat(calling("colleague", question="Aurora weight"), "The Aurora weighs 410 grams."),
        [colleague],
    )
    agent.invoke({"messages": [HumanMessage("How heavy is the Aurora?")]}, config)


@app(
    "sub-answers cut to short previews in one prompt",
    question="How heavy is the Aurora?",
    answer="The Aurora weighs 410 grams.",
    chunks=["Aurora: a lamp of brass."],
    absent=["The Aurora weighs 410"],
    invented=["The Aurora weighs 410 grams."],
)
def previews(config):
    @chain
    def answer(question):
        docs = finding("Aurora: a lamp of brass.").invoke(question)
        first = (
            chat("The Aurora weighs 410 grams and is made of brass.")
            .invoke(f"{joined(docs)}\n{question}")
            .text
        )
        return (
            chat("The Aurora weighs 410 grams.")
            .invoke(f"Source: {joined(docs)}\n\nDrafts:\n- {first[:25]}...\n\nQuestion: {question}")
            .text
        )

    answer.invoke("How heavy is the Aurora?", config)


@app(
    "a draft from which code drops every second sentence",
    question="Tell me about Lake Ula.",
    answer="Lake Ula is deep. It has swans.",
    chunks=["Lake Ula: 31 m deep."],
    absent=["It has swans"],
    invented=["It has swans."],
)
def dropped(config):
    @chain
    def answer(question):
        docs = finding("Lake Ula: 31 m deep.").invoke(question)
        first = (
            chat("Lake Ula is deep. Fishing is banned. It has swans. Camp there.")
            .invoke(f"{joined(docs)}\n{question}")
            .text
        )
        kept = ". ".join(first.split(". ")[::2])
        return (
            chat("Lake Ula is deep. It has swans.")
            .invoke(f"{joined(docs)}\n\nNotes: {kept}\n\nQuestion: {question}")
            .text
        )

    answer.invoke("Tell me about Lake Ula.", config)


@app(
    "a plan whose steps a loop shows one by one",
    question="How do I descale the kettle?",
    answer="Boil vinegar, then rinse twice.",
    chunks=["Descaling: boil vinegar and rinse."],
    absent=["rinse it twice"],
    invented=["rinse twice"],
)
def steps(config):
    @chain
    def answer(question):
        docs = finding("Descaling: boil vinegar and rinse.").invoke(question)
        plan = (
            chat("boil some vinegar\nrinse it twice").invoke(f"Plan: {question}").text.splitlines()
        )
        done = [
            chat(f"{step} done").invoke(f"Explain step: {step}\n{joined(docs)}").text
            for step in plan
        ]
        return (
            chat("Boil vinegar, then rinse twice.")
            .invoke(f"Steps:\n{plan}\nResults: {done}\nDocs: {joined(docs)}\nQuestion: {question}")
            .text
        )

    answer.invoke("How do I descale the kettle?", config)


@app(
    "numbers that the model hands to a tool which draws them",
    question="Compare the weights of the bikes.",
    answer="The Kite weighs 9 kg, the Wren 12 kg.",
    chunks=["Kite: 9 kg"],
    allowed=["no data", "Weights in kilograms"],
    absent=["Wren 12"],
    invented=["the Wren 12 kg"],
)
def chart(config):
    @tool
    def specs(bike: str) -> str:
        """Specs."""
        return "Kite: 9 kg" if bike == "Kite" else "no data"

    @tool
    def bar_chart(title: str, bars: list[dict]) -> str:
        """Draw a chart."""
        return f"{title}\n" + "\n".join(f"{b['name']} {b['value']}" for b in bars)

    agent = create_agent(
        chat(
            calling("specs", bike="Kite"),
            calling(
                "bar_chart",
                title="Weights in kilograms",
                bars=[{"name": "Kite", "value": 9}, {"name": "Wren", "value": 12}],
            ),
            "The Kite weighs 9 kg, the Wren 12 kg.",
        ),
        [specs, bar_chart],
    )
    agent.invoke({"messages": [HumanMessage("Compare the weights of the bikes.")]}, config)

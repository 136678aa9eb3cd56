"""Words of models that come back cut, numbered or without the others."""

from harness import app
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index_fakes import Shelf, call, memory, talker, writer


@app(
    "a file that the model wrote and reads with line numbers",
    question="Compare the two lamps.",
    answer="The Aurora weighs 410 g, the Nova 200 g.",
    chunks=["Nova: 200 g"],
    absent=["Aurora 410 g"],
    allowed=["written"],
    invented=["The Aurora weighs 410 g"],
)
async def numbered():
    files = {}

    def write_file(path: str, content: str) -> str:
        """Write."""
        files[path] = content
        return "written"

    def read_file(path: str) -> str:
        """Read."""
        return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(files[path].splitlines(), 1))

    def lamps(query: str) -> str:
        """Lamps."""
        return "Nova: 200 g"

    agent = FunctionAgent(
        tools=[write_file, read_file, lamps],
        llm=talker(
            call("lamps", query="Nova"),
            call("write_file", path="n.md", content="# Lamps\nAurora 410 g\nNova 200 g"),
            call("read_file", path="n.md"),
            "The Aurora weighs 410 g, the Nova 200 g.",
        ),
    )
    await agent.run("Compare the two lamps.", memory=memory())


@app(
    "a colleague's reply that the tool cuts to a number of letters",
    question="How heavy is the Aurora?",
    answer="The Aurora weighs 410 grams.",
    chunks=["Aurora: a lamp of brass."],
    absent=["The Aurora weighs 410"],
    invented=["The Aurora weighs 410 grams."],
)
async def cut_reply():
    engine = RetrieverQueryEngine.from_args(
        Shelf("Aurora: a lamp of brass."),
        llm=writer("The Aurora weighs 410 grams and is made of brass."),
    )

    def colleague(question: str) -> str:
        """Ask."""
        return str(engine.query(question))[:25] + "..."

    agent = FunctionAgent(
        tools=[colleague],
        llm=talker(call("colleague", question="Aurora weight"), "The Aurora weighs 410 grams."),
    )
    await agent.run("How heavy is the Aurora?", memory=memory())


@app(
    "sub-answers cut to short previews in one prompt",
    question="How heavy is the Aurora?",
    answer="The Aurora weighs 410 grams.",
    chunks=["Aurora: a lamp of brass."],
    absent=["The Aurora weighs 410"],
    invented=["The Aurora weighs 410 grams."],
)
def previews():
    class Engine(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            text = Shelf("Aurora: a lamp of brass.").retrieve(query_str)[0].text
            first = str(
                writer("The Aurora weighs 410 grams and is made of brass.").complete(
                    f"{text}\n{query_str}"
                )
            )
            return str(
                writer("The Aurora weighs 410 grams.").complete(
                    f"Source: {text}\n\nDrafts:\n- {first[:25]}...\n\nQuestion: {query_str}"
                )
            )

    Engine().query("How heavy is the Aurora?")


@app(
    "a draft from which code drops every second sentence",
    question="Tell me about Lake Ula.",
    answer="Lake Ula is deep. It has swans.",
    chunks=["Lake Ula: 31 m deep."],
    absent=["It has swans"],
    invented=["It has swans."],
)
def dropped():
    class Engine(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            text = Shelf("Lake Ula: 31 m deep.").retrieve(query_str)[0].text
            first = str(
                writer("Lake Ula is deep. Fishing is banned. It has swans. Camp there.").complete(
                    f"{text}\n{query_str}"
                )
            )
            kept = ". ".join(first.split(". ")[::2])
            return str(
                writer("Lake Ula is deep. It has swans.").complete(
                    f"{text}\n\nNotes: {kept}\n\nQuestion: {query_str}"
                )
            )

    Engine().query("Tell me about Lake Ula.")

"""Tools that give back what the model handed them, in another form."""

from harness import app
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index_fakes import Shelf, call, memory, talker, writer


@app(
    "a program of the model's that prints what the model wrote into it",
    question="How heavy is the Aurora lamp?",
    answer="The lamp weighs 410 g.",
    chunks=["The Aurora lamp weighs 310 g."],
    absent=["weight: 410 g"],
    invented=["The lamp weighs 410 g."],
)
async def prints():
    def python(code: str) -> str:
        """Run Python."""
        import contextlib
        import io

        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code)
        return out.getvalue().strip()

    def lamps(query: str) -> str:
        """Lamps."""
        return "The Aurora lamp weighs 310 g."

    agent = FunctionAgent(
        tools=[python, lamps],
        llm=talker(
            call("lamps", query="Aurora"),
            call("python", code="w = 'weight: 410 g'\nprint(w)"),
            "The lamp weighs 410 g.",
        ),
    )
    await agent.run("How heavy is the Aurora lamp?", memory=memory())


@app(
    "a plan that the model writes into a tool, which numbers the steps",
    question="Plan my move to Graz.",
    answer="First give notice by March. A van costs 90 EUR.",
    chunks=["Van for a day: 90 EUR."],
    absent=["give notice by March"],
    allowed=["Plan of 2 steps saved"],
    invented=["First give notice by March."],
)
async def plan():
    def make_plan(steps: list[str]) -> str:
        """Save a plan."""
        return "Plan of 2 steps saved:\n" + "\n".join(
            f"{n}. {step}" for n, step in enumerate(steps, 1)
        )

    def vans(city: str) -> str:
        """Vans."""
        return "Van for a day: 90 EUR."

    agent = FunctionAgent(
        tools=[make_plan, vans],
        llm=talker(
            call("make_plan", steps=["give notice by March", "rent a van"]),
            call("vans", city="Graz"),
            "First give notice by March. A van costs 90 EUR.",
        ),
    )
    await agent.run("Plan my move to Graz.", memory=memory())


@app(
    "a reasoning agent whose plan a tool gives back",
    question="Plan my move to Graz.",
    answer="First give notice by March. A van costs 90 EUR.",
    chunks=["Van for a day: 90 EUR."],
    absent=["give notice by March"],
    invented=["First give notice by March."],
)
async def react_plan():
    def make_plan(steps: list[str]) -> str:
        """Save a plan."""
        return "Plan of 2 steps saved:\n" + "\n".join(
            f"{n}. {step}" for n, step in enumerate(steps, 1)
        )

    def vans(city: str) -> str:
        """Vans."""
        return "Van for a day: 90 EUR."

    agent = ReActAgent(
        tools=[make_plan, vans],
        llm=writer(
            "Thought: plan.\nAction: make_plan\n"
            'Action Input: {"steps": ["give notice by March", "rent a van"]}',
            'Thought: price.\nAction: vans\nAction Input: {"city": "Graz"}',
            "Thought: done.\nAnswer: First give notice by March. A van costs 90 EUR.",
        ),
    )
    await agent.run("Plan my move to Graz.", memory=memory())


@app(
    "a reasoning agent whose program prints what the model wrote into it",
    question="How heavy is the Aurora lamp?",
    answer="The lamp weighs 410 g.",
    chunks=["The Aurora lamp weighs 310 g."],
    absent=["weight: 410 g"],
    invented=["The lamp weighs 410 g."],
)
async def react_prints():
    def python(code: str) -> str:
        """Run Python."""
        return "weight: 410 g"

    def lamps(query: str) -> str:
        """Lamps."""
        return "The Aurora lamp weighs 310 g."

    agent = ReActAgent(
        tools=[python, lamps],
        llm=writer(
            'Thought: look.\nAction: lamps\nAction Input: {"query": "Aurora"}',
            "Thought: print.\nAction: python\n"
            'Action Input: {"code": "w = \'weight: 410 g\'; print(w)"}',
            "Thought: done.\nAnswer: The lamp weighs 410 g.",
        ),
    )
    await agent.run("How heavy is the Aurora lamp?", memory=memory())


@app(
    "a tool that returns the transcript of a call",
    question="What did we promise Mrs Lind?",
    answer="We promised Mrs Lind a refund of 20 EUR. She was very angry.",
    chunks=["Agent: I will refund 20 EUR today."],
    invented=["She was very angry."],
)
async def transcript():
    def call_log(name: str) -> str:
        """Log of a call."""
        return "Customer: It is broken.\nAgent: I will refund 20 EUR today.\nCustomer: Thanks."

    agent = FunctionAgent(
        tools=[call_log],
        llm=talker(
            call("call_log", name="Lind"),
            "We promised Mrs Lind a refund of 20 EUR. She was very angry.",
        ),
    )
    await agent.run("What did we promise Mrs Lind?", memory=memory())


@app(
    "nodes that are transcripts with user and assistant",
    question="How do I reset the lamp?",
    answer="Hold the button for five seconds. Then wait an hour.",
    chunks=["User: My lamp blinks.\nAssistant: Hold the button for five seconds."],
    invented=["Then wait an hour."],
)
def chats():
    RetrieverQueryEngine.from_args(
        Shelf("User: My lamp blinks.\nAssistant: Hold the button for five seconds."),
        llm=writer("Hold the button for five seconds. Then wait an hour."),
    ).query("How do I reset the lamp?")

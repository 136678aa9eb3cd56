"""Tools that give back what the model handed them, in another form."""

from harness import app
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import calling, calling_all, chat, finding


@app(
    "a program of the model's that prints what the model wrote into it",
    question="How heavy is the Aurora lamp?",
    answer="The lamp weighs 410 g.",
    chunks=["The Aurora lamp weighs 310 g."],
    absent=["weight: 410 g"],
    invented=["The lamp weighs 410 g."],
)
def prints(config):
    @tool
    def python(code: str) -> str:
        """Run Python."""
        import contextlib
        import io

        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code)
        return out.getvalue().strip()

    lamp = create_retriever_tool(finding("The Aurora lamp weighs 310 g."), "lamps", "Lamps.")
    agent = create_agent(
        chat(
            calling("lamps", query="Aurora"),
            calling("python", code="w = 'weight: 410 g'\nprint(w)"),
            "The lamp weighs 410 g.",
        ),
        [lamp, python],
    )
    agent.invoke({"messages": [HumanMessage("How heavy is the Aurora lamp?")]}, config)


@app(
    "a plan that the model writes into a tool, which numbers the steps",
    question="Plan my move to Graz.",
    answer="First give notice by March. A van costs 90 EUR.",
    chunks=["Van for a day: 90 EUR."],
    absent=["give notice by March"],
    allowed=["Plan of 2 steps saved"],
    invented=["First give notice by March."],
)
def plan(config):
    @tool
    def make_plan(steps: list[str]) -> str:
        """Save a plan."""
        return "Plan of 2 steps saved:\n" + "\n".join(
            f"{n}. {step}" for n, step in enumerate(steps, 1)
        )

    @tool
    def vans(city: str) -> str:
        """Vans."""
        return "Van for a day: 90 EUR."

    agent = create_agent(
        chat(
            calling("make_plan", steps=["give notice by March", "rent a van"]),
            calling("vans", city="Graz"),
            "First give notice by March. A van costs 90 EUR.",
        ),
        [make_plan, vans],
    )
    agent.invoke({"messages": [HumanMessage("Plan my move to Graz.")]}, config)


@app(
    "a table of the model's that a tool turns into HTML and gives back",
    question="Compare the two bikes.",
    answer="The Kite weighs 9 kg, the Wren 12 kg.",
    chunks=["Kite: 9 kg"],
    allowed=["no data"],
    absent=["12 kg"],
    invented=["the Wren 12 kg"],
)
def html_table(config):
    @tool
    def specs(bike: str) -> str:
        """Specs."""
        return "Kite: 9 kg" if bike == "Kite" else "no data"

    @tool
    def render(rows: list[list[str]]) -> str:
        """Render a table."""
        return (
            "<table>"
            + "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
            + "</table>"
        )

    agent = create_agent(
        chat(
            calling_all(("specs", {"bike": "Kite"}), ("specs", {"bike": "Wren"})),
            calling("render", rows=[["Kite", "9 kg"], ["Wren", "12 kg"]]),
            "The Kite weighs 9 kg, the Wren 12 kg.",
        ),
        [specs, render],
    )
    agent.invoke({"messages": [HumanMessage("Compare the two bikes.")]}, config)


@app(
    "a ReAct agent in text whose program prints what the model wrote into it",
    question="How heavy is the Aurora lamp?",
    answer="The lamp weighs 410 g.",
    chunks=["The Aurora lamp weighs 310 g."],
    absent=["weight: 410 g"],
    invented=["The lamp weighs 410 g."],
)
def react(config):
    from langchain_classic.agents import AgentExecutor, Tool, create_react_agent
    from langchain_core.prompts import PromptTemplate
    from langchain_fakes import Completing

    tools = [
        Tool(name="lamps", description="Lamps", func=lambda query: "The Aurora lamp weighs 310 g."),
        Tool(name="python", description="Python", func=lambda code: "weight: 410 g"),
    ]
    prompt = PromptTemplate.from_template(
        "Tools: {tools} {tool_names}\nQuestion: {input}\nThought:{agent_scratchpad}"
    )
    model = Completing(
        replies=[
            " look.\nAction: lamps\nAction Input: Aurora",
            " compute.\nAction: python\nAction Input: print('weight: 410 g')",
            " done.\nFinal Answer: The lamp weighs 410 g.",
        ]
    )
    AgentExecutor(agent=create_react_agent(model, tools, prompt), tools=tools).invoke(
        {"input": "How heavy is the Aurora lamp?"}, config
    )


@app(
    "a tool that returns the transcript of a call",
    question="What did we promise Mrs Lind?",
    answer="We promised Mrs Lind a refund of 20 EUR. She was very angry.",
    chunks=["Agent: I will refund 20 EUR today."],
    invented=["She was very angry."],
)
def transcript(config):
    @tool
    def call_log(name: str) -> str:
        """Log of a call."""
        return "Customer: It is broken.\nAgent: I will refund 20 EUR today.\nCustomer: Thanks."

    agent = create_agent(
        chat(
            calling("call_log", name="Lind"),
            "We promised Mrs Lind a refund of 20 EUR. She was very angry.",
        ),
        [call_log],
    )
    agent.invoke({"messages": [HumanMessage("What did we promise Mrs Lind?")]}, config)

"""Agents: of function calls, of thoughts, of code, and several that hand over."""

from harness import app
from llama_index.core.agent.workflow import (
    AgentStream,
    AgentWorkflow,
    CodeActAgent,
    FunctionAgent,
    ReActAgent,
    ToolCallResult,
)
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import Context
from llama_index_fakes import Shelf, call, index, memory, talker, when, writer

TARIFF = "Tariff S costs 9 euros a month and includes 5 gigabytes."
ROAMING = "In Switzerland data costs 2 euros a megabyte."
OUTAGE = "Cell tower 4411 has been down since Tuesday."


def lookup(topic: str) -> str:
    """Look a topic up in the tariff handbook."""
    return TARIFF if "tariff" in topic else ROAMING


@app(
    "an agent with a tool",
    question="What does tariff S cost?",
    answer="It costs 9 euros a month. Calls to Norway are free.",
    chunks=[TARIFF],
    invented=["Calls to Norway are free."],
)
async def function_agent():
    llm = talker(
        call("lookup", topic="tariff S"), "It costs 9 euros a month. Calls to Norway are free."
    )
    await FunctionAgent(tools=[lookup], llm=llm).run("What does tariff S cost?", memory=memory())


@app(
    "an agent that does not stream and keeps calls in keywords",
    question="What does tariff S cost?",
    answer="Nine euros each month.",
    chunks=[TARIFF],
)
async def agent_without_stream():
    llm = talker(call("lookup", topic="tariff S"), "Nine euros each month.", calls_in_blocks=False)
    await FunctionAgent(tools=[lookup], llm=llm, streaming=False).run(
        user_msg="What does tariff S cost?", memory=memory()
    )


@app(
    "an agent that calls two tools at once",
    question="What do tariff S and data in Switzerland cost?",
    answer="9 euros a month, and 2 euros a megabyte in Switzerland.",
    chunks=[TARIFF, ROAMING],
)
async def parallel_tools():
    llm = talker(
        [call("lookup", topic="tariff S"), call("lookup", topic="Switzerland")],
        "9 euros a month, and 2 euros a megabyte in Switzerland.",
    )
    await FunctionAgent(tools=[lookup], llm=llm).run(
        "What do tariff S and data in Switzerland cost?", memory=memory()
    )


@app(
    "an agent that thinks aloud beside its calls",
    question="Why is my phone offline?",
    answer="Cell tower 4411 is down since Tuesday.",
    chunks=[OUTAGE],
    absent=["The battery may be empty, let me look at the towers."],
)
async def thinks_aloud():
    def towers(area: str) -> str:
        """State of the towers of an area."""
        return OUTAGE

    llm = talker(
        ["The battery may be empty, let me look at the towers.", call("towers", area="north")],
        "Cell tower 4411 is down since Tuesday.",
    )
    await FunctionAgent(tools=[towers], llm=llm).run("Why is my phone offline?", memory=memory())


@app(
    "an agent with three steps, of which the last repeats its own invention",
    question="Is there a cheaper tariff than S?",
    answer="No. Tariff S is the cheapest. Students pay half.",
    chunks=[TARIFF, "Tariff M costs 15 euros a month."],
    absent=["Students pay half, I recall."],
    invented=["Students pay half."],
)
async def three_steps():
    def prices(tariff: str) -> str:
        """Price of a tariff."""
        return {"S": TARIFF, "M": "Tariff M costs 15 euros a month."}[tariff]

    llm = talker(
        ["Students pay half, I recall.", call("prices", tariff="S")],
        call("prices", tariff="M"),
        "No. Tariff S is the cheapest. Students pay half.",
    )
    await FunctionAgent(tools=[prices], llm=llm).run(
        "Is there a cheaper tariff than S?", memory=memory()
    )


@app(
    "an agent with a query engine as its tool",
    question="How much data does tariff S include?",
    answer="Five gigabytes.",
    chunks=[TARIFF],
    absent=["Tariff S comes with 5 GB, and unused data rolls over."],
)
async def engine_tool():
    inner = RetrieverQueryEngine.from_args(
        Shelf(TARIFF), llm=writer("Tariff S comes with 5 GB, and unused data rolls over.")
    )
    tool = QueryEngineTool.from_defaults(inner, name="handbook", description="The handbook")
    llm = talker(call("handbook", input="data of tariff S"), "Five gigabytes.")
    await FunctionAgent(tools=[tool], llm=llm).run(
        "How much data does tariff S include?", memory=memory()
    )


@app(
    "an agent whose engine invents what the agent repeats",
    question="How much data does tariff S include?",
    answer="Five gigabytes. Unused data rolls over to the next month.",
    chunks=[TARIFF],
    absent=["5 GB. Unused data rolls over to the next month."],
    invented=["Unused data rolls over to the next month."],
)
async def engine_tool_invents():
    inner = index(TARIFF).as_query_engine(
        llm=talker("5 GB. Unused data rolls over to the next month.")
    )
    tool = QueryEngineTool.from_defaults(inner, name="handbook", description="The handbook")
    llm = talker(
        call("handbook", input="data"), "Five gigabytes. Unused data rolls over to the next month."
    )
    await FunctionAgent(tools=[tool], llm=llm).run(
        "How much data does tariff S include?", memory=memory()
    )


@app(
    "an agent whose engine's answer is handed to the user as it is",
    question="How much data does tariff S include?",
    answer="It includes five gigabytes.",
    chunks=[TARIFF],
)
async def engine_return_direct():
    inner = index(TARIFF).as_query_engine(llm=talker("It includes five gigabytes."))
    tool = QueryEngineTool.from_defaults(
        inner, name="handbook", description="The handbook", return_direct=True
    )
    await FunctionAgent(tools=[tool], llm=talker(call("handbook", input="data"))).run(
        "How much data does tariff S include?", memory=memory()
    )


@app(
    "an agent that finds a tool's failure and another tool",
    question="Why is my phone offline?",
    answer="A tower is down.",
    chunks=[OUTAGE],
)
async def failing_tool():
    def account(number: str) -> str:
        """State of an account."""
        raise ConnectionError("billing database unreachable")

    def towers(area: str) -> str:
        """State of the towers."""
        return OUTAGE

    llm = talker(call("account", number="17"), call("towers", area="north"), "A tower is down.")
    await FunctionAgent(tools=[account, towers], llm=llm).run(
        "Why is my phone offline?", memory=memory()
    )


@app(
    "an agent that only talks",
    status="not_rag",
)
async def only_talks():
    await FunctionAgent(tools=[lookup], llm=talker("Hello! What can I do for you?")).run(
        "Hi there", memory=memory()
    )


@app(
    "the second turn of an agent, answered from the first turn's tool",
    question="And how much data is in it?",
    answer="5 gigabytes, as the handbook says.",
    prompt=[TARIFF],
    absent=["It costs nine euros and has a nice SIM card."],
    cases=2,
)
async def second_turn():
    llm = talker(
        call("lookup", topic="tariff S"),
        "It costs nine euros and has a nice SIM card.",
        "5 gigabytes, as the handbook says.",
    )
    agent, kept = FunctionAgent(tools=[lookup], llm=llm), memory()
    await agent.run("What does tariff S cost?", memory=kept)
    await agent.run("And how much data is in it?", memory=kept)


@app(
    "the second turn of an agent with a context that is kept",
    question="And in Switzerland?",
    answer="There a megabyte costs 2 euros. Calls are free there.",
    chunks=[ROAMING],
    prompt=[TARIFF],
    absent=["Nine euros a month. Calls are free there."],
    invented=["Calls are free there."],
    cases=2,
)
async def second_turn_with_context():
    llm = talker(
        call("lookup", topic="tariff S"),
        "Nine euros a month. Calls are free there.",
        call("lookup", topic="Switzerland"),
        "There a megabyte costs 2 euros. Calls are free there.",
    )
    agent, remembered = FunctionAgent(tools=[lookup], llm=llm), memory()
    kept = Context(agent)
    await agent.run("What does tariff S cost?", ctx=kept, memory=remembered)
    await agent.run("And in Switzerland?", ctx=kept, memory=remembered)


@app(
    "an agent with a history of its own application",
    question="And how much data?",
    answer="Five gigabytes are included.",
    chunks=[TARIFF],
    absent=["Tariff S is great, everybody has it."],
)
async def with_history():
    history = [
        ChatMessage(role="user", content="Tell me about tariff S."),
        ChatMessage(role="assistant", content="Tariff S is great, everybody has it."),
    ]
    llm = talker(call("lookup", topic="tariff S"), "Five gigabytes are included.")
    await FunctionAgent(tools=[lookup], llm=llm).run(
        "And how much data?", chat_history=history, memory=memory()
    )


@app(
    "an agent with a state that the model sees",
    question="Which tariff have I got?",
    answer="You have tariff S for 9 euros.",
    chunks=[TARIFF],
    prompt=["customer 4711 holds tariff S"],
)
async def state_in_prompt():
    llm = talker(call("lookup", topic="tariff"), "You have tariff S for 9 euros.")
    agent = FunctionAgent(
        tools=[lookup], llm=llm, initial_state={"account": "customer 4711 holds tariff S"}
    )
    await agent.run("Which tariff have I got?", memory=memory())


@app(
    "an agent whose system prompt has the opening hours",
    question="Can I come by on Sunday?",
    answer="No, the shop is closed on Sundays, but tariff S can be booked online.",
    chunks=[TARIFF],
    prompt=["Shop hours: Monday to Saturday, 10 to 19."],
)
async def system_prompt():
    llm = talker(
        call("lookup", topic="tariff"),
        "No, the shop is closed on Sundays, but tariff S can be booked online.",
    )
    await FunctionAgent(
        tools=[lookup],
        llm=llm,
        system_prompt="You are a clerk. Shop hours: Monday to Saturday, 10 to 19.",
    ).run("Can I come by on Sunday?", memory=memory())


@app(
    "an agent whose events are streamed to the browser",
    question="What does tariff S cost?",
    answer="9 euros, paid at the end of the month.",
    chunks=[TARIFF],
)
async def streamed_events():
    llm = talker(call("lookup", topic="tariff S"), "9 euros, paid at the end of the month.")
    handler = FunctionAgent(tools=[lookup], llm=llm).run(
        "What does tariff S cost?", memory=memory()
    )
    shown = ""
    async for event in handler.stream_events():
        if isinstance(event, AgentStream):
            shown += event.delta
        elif isinstance(event, ToolCallResult):
            shown += f"[{event.tool_name}]"
    await handler


# --- thoughts and code ----------------------------------------------------------------------------


@app(
    "an agent that reasons in text",
    question="What does data cost in Switzerland?",
    answer="2 euros a megabyte.",
    chunks=[ROAMING],
    absent=["I guess it is expensive there."],
)
async def react():
    llm = writer(
        "Thought: I guess it is expensive there.\n"
        'Action: lookup\nAction Input: {"topic": "Switzerland"}\n',
        "Thought: I can answer without using any more tools.\nAnswer: 2 euros a megabyte.",
    )
    await ReActAgent(tools=[lookup], llm=llm).run(
        "What does data cost in Switzerland?", memory=memory()
    )


@app(
    "an agent that reasons in text over two tools with a chat model",
    question="Is tariff S good for a week in Switzerland?",
    answer="Hardly: 5 gigabytes at home, but 2 euros a megabyte there. A week pass costs 7 euros.",
    chunks=[TARIFF, ROAMING],
    absent=["First the tariff, it will be fine."],
    invented=["A week pass costs 7 euros."],
)
async def react_two():
    llm = talker(
        "Thought: First the tariff, it will be fine.\n"
        'Action: lookup\nAction Input: {"topic": "tariff S"}',
        'Thought: Now roaming.\nAction: lookup\nAction Input: {"topic": "Switzerland"}',
        "Thought: I can answer without using any more tools.\n"
        "Answer: Hardly: 5 gigabytes at home, but 2 euros a megabyte there. "
        "A week pass costs 7 euros.",
    )
    await ReActAgent(tools=[lookup], llm=llm, streaming=False).run(
        "Is tariff S good for a week in Switzerland?", memory=memory()
    )


@app(
    "an agent that reasons in text and answers at once",
    status="not_rag",
)
async def react_at_once():
    llm = writer("Thought: I can answer without using any more tools.\nAnswer: Hello!")
    await ReActAgent(tools=[lookup], llm=llm).run("Hello you", memory=memory())


@app(
    "an agent that writes code, whose output is evidence",
    question="What do three months of tariff S cost?",
    answer="Three months cost 27 euros.",
    prompt=["27 euros for 3 months of tariff S"],
    absent=["I shall multiply nine by three."],
)
async def code_act():
    def price(tariff: str) -> int:
        """Monthly price of a tariff in euros."""
        return 9

    def run_code(code: str) -> str:
        return f"{price('S') * 3} euros for 3 months of tariff S"

    llm = talker(
        "I shall multiply nine by three.\n<execute>\nprint(price('S') * 3)\n</execute>",
        "Three months cost 27 euros.",
    )
    await CodeActAgent(code_execute_fn=run_code, tools=[price], llm=llm).run(
        "What do three months of tariff S cost?", memory=memory()
    )


# --- several agents -------------------------------------------------------------------------------


def desk(llm_clerk, llm_technician):
    def towers(area: str) -> str:
        """State of the towers."""
        return OUTAGE

    clerk = FunctionAgent(
        name="clerk",
        description="Knows tariffs",
        tools=[lookup],
        llm=llm_clerk,
        can_handoff_to=["technician"],
    )
    technician = FunctionAgent(
        name="technician", description="Knows towers", tools=[towers], llm=llm_technician
    )
    return AgentWorkflow(agents=[clerk, technician], root_agent="clerk")


@app(
    "two agents, one of which hands over",
    question="Why is my phone offline?",
    answer="The tower near you is down since Tuesday.",
    chunks=[OUTAGE],
    absent=["customer suspects a broken SIM card"],
)
async def hand_off():
    clerk = talker(
        call("handoff", to_agent="technician", reason="customer suspects a broken SIM card"),
    )
    technician = talker(call("towers", area="north"), "The tower near you is down since Tuesday.")
    await desk(clerk, technician).run(user_msg="Why is my phone offline?", memory=memory())


@app(
    "two agents that both use a tool before the answer",
    question="What do I pay, and why am I offline?",
    answer="You pay 9 euros; tower 4411 is down.",
    chunks=[TARIFF, OUTAGE],
    absent=["costs are clear, now the outage"],
)
async def hand_off_after_tool():
    clerk = talker(
        call("lookup", topic="tariff"),
        call("handoff", to_agent="technician", reason="costs are clear, now the outage"),
    )
    technician = talker(call("towers", area="north"), "You pay 9 euros; tower 4411 is down.")
    await desk(clerk, technician).run(
        user_msg="What do I pay, and why am I offline?", memory=memory()
    )


@app(
    "an agent that asks other agents as tools",
    question="What should a visitor from Kiel know?",
    answer="The museum is free, and the ferry runs hourly.",
    chunks=["Museum: entry is free.", "Ferry: departures every hour."],
    absent=["Culture report: free entry, bring a coat.", "Transport report: hourly boats."],
)
async def agents_as_tools():
    def museums() -> str:
        """Facts on museums."""
        return "Museum: entry is free."

    def ferries() -> str:
        """Facts on ferries."""
        return "Ferry: departures every hour."

    culture = FunctionAgent(
        name="culture",
        description="Culture",
        tools=[museums],
        llm=talker(call("museums"), "Culture report: free entry, bring a coat."),
    )
    transport = FunctionAgent(
        name="transport",
        description="Transport",
        tools=[ferries],
        llm=talker(call("ferries"), "Transport report: hourly boats."),
    )

    async def ask_culture(question: str) -> str:
        """Ask the expert on culture."""
        return str(await culture.run(user_msg=question, memory=memory()))

    async def ask_transport(question: str) -> str:
        """Ask the expert on transport."""
        return str(await transport.run(user_msg=question, memory=memory()))

    llm = talker(
        call("ask_culture", question="What about museums?"),
        call("ask_transport", question="What about boats?"),
        "The museum is free, and the ferry runs hourly.",
    )
    await FunctionAgent(tools=[ask_culture, ask_transport], llm=llm).run(
        "What should a visitor from Kiel know?", memory=memory()
    )


@app(
    "agents that write notes and a report into a shared state",
    question="Write a report on tides.",
    answer="Tides follow the moon, about every 12 hours.",
    chunks=["Encyclopedia: tides follow the moon; high water comes about every 12 hours."],
    absent=["Note by researcher: moon is behind it all.", "# Tides\nDraft: the moon pulls."],
    allowed=["Notes recorded.", "Report written."],
)
async def shared_state():
    async def search(query: str) -> str:
        """Search the encyclopedia."""
        return "Encyclopedia: tides follow the moon; high water comes about every 12 hours."

    async def record_notes(ctx: Context, notes: str) -> str:
        """Keep notes."""
        async with ctx.store.edit_state() as state:
            state["state"]["notes"] = notes
        return "Notes recorded."

    async def write_report(ctx: Context, report: str) -> str:
        """Keep the report."""
        async with ctx.store.edit_state() as state:
            state["state"]["report"] = report
        return "Report written."

    researcher = FunctionAgent(
        name="researcher",
        description="Searches",
        tools=[search, record_notes],
        llm=talker(
            call("search", query="tides"),
            call("record_notes", notes="Note by researcher: moon is behind it all."),
            call("handoff", to_agent="writer", reason="notes are there"),
        ),
        can_handoff_to=["writer"],
    )
    author = FunctionAgent(
        name="writer",
        description="Writes",
        tools=[write_report],
        llm=talker(
            call("write_report", report="# Tides\nDraft: the moon pulls."),
            "Tides follow the moon, about every 12 hours.",
        ),
    )
    await AgentWorkflow(
        agents=[researcher, author],
        root_agent="researcher",
        initial_state={"notes": "", "report": ""},
    ).run(user_msg="Write a report on tides.", memory=memory())


class Offer(BaseModel):
    """An offer."""

    tariff: str
    euros: int
    pitch: str


@app(
    "an agent with a structured output",
    question="Make me an offer.",
    answer=("Tariff S costs you 9 euros a month.",),
    chunks=[TARIFF],
)
async def structured_agent():
    llm = talker(
        call("lookup", topic="tariff"),
        "Tariff S costs you 9 euros a month.",
        call("Offer", tariff="S", euros=9, pitch="Tariff S costs you 9 euros a month."),
    )
    await FunctionAgent(tools=[lookup], llm=llm, output_cls=Offer).run(
        "Make me an offer.", memory=memory()
    )


@app(
    "an agent that reaches its limit and is asked for an answer",
    question="Which tariff is best?",
    # LlamaIndex asks for it without what the tools said.
    answer="Tariff S, as far as I could find out.",
    absent=[TARIFF],
)
async def early_stop():
    llm = talker(
        when(
            {"maximum number of iterations": "Tariff S, as far as I could find out."},
            call("lookup", topic="tariff"),
        )
    )
    await FunctionAgent(tools=[lookup], llm=llm, early_stopping_method="generate").run(
        "Which tariff is best?", memory=memory(), max_iterations=2
    )


@app(
    "an agent over an index, one engine for each document",
    question="Which contract is longer?",
    answer="The lease, with ten years against two.",
    chunks=["The lease runs for ten years.", "The cleaning contract runs for two years."],
    absent=["Lease: a decade.", "Cleaning: 24 months."],
)
async def per_document_tools():
    texts = {
        "lease": ("The lease runs for ten years.", "Lease: a decade."),
        "cleaning": ("The cleaning contract runs for two years.", "Cleaning: 24 months."),
    }
    tools = [
        QueryEngineTool.from_defaults(
            index(text).as_query_engine(llm=writer(said)),
            name=name,
            description=f"The {name} contract",
        )
        for name, (text, said) in texts.items()
    ]
    llm = talker(
        [call("lease", input="duration"), call("cleaning", input="duration")],
        "The lease, with ten years against two.",
    )
    await FunctionAgent(tools=tools, llm=llm).run("Which contract is longer?", memory=memory())


@app(
    "an agent whose tool is asynchronous and asks a retriever",
    question="When is the market?",
    answer="On Saturdays from eight.",
    chunks=["The market is on Saturdays.", "Stalls open at eight."],
)
async def retrieving_tool():
    found = index("The market is on Saturdays.", "Stalls open at eight.").as_retriever(
        similarity_top_k=2
    )

    async def search(query: str) -> str:
        """Search the town's pages."""
        return "\n\n".join(n.get_content() for n in await found.aretrieve(query))

    llm = talker(call("search", query="market stalls"), "On Saturdays from eight.")
    tool = FunctionTool.from_defaults(async_fn=search)
    await FunctionAgent(tools=[tool], llm=llm).run("When is the market?", memory=memory())


@app(
    "an agent that drops most of what its tool's retriever finds",
    question="When is the market?",
    answer="On Saturdays.",
    chunks=["The market is on Saturdays."],
    absent=["The swimming pool is closed for repairs."],
)
async def tool_that_drops():
    found = Shelf("The market is on Saturdays.", "The swimming pool is closed for repairs.")

    def search(query: str) -> str:
        """Search the town's pages."""
        return found.retrieve(query)[0].text

    llm = talker(call("search", query="market"), "On Saturdays.")
    await FunctionAgent(tools=[search], llm=llm).run("When is the market?", memory=memory())

"""Several agents: supervisors, agents as tools, hand-offs, debates, planners with workers."""

import operator
from typing import Annotated, TypedDict

from harness import app
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, create_retriever_tool
from langchain_fakes import calling, calling_all, chat, finding, joined
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send

FLIGHTS = "Flight KL 1780 to Oslo leaves at 9:25 and costs 188 EUR."
HOTELS = "Hotel Bristol in Oslo has rooms from 140 EUR a night."


def ask(text):
    return {"messages": [HumanMessage(text)]}


def searcher(name, *texts):
    return create_retriever_tool(finding(*texts), name, "Searches.")


@app(
    "agents that a supervisor calls as tools",
    question="Plan a trip to Oslo for me.",
    answer="Fly with KL 1780 at 9:25 and stay at the Hotel Bristol. Breakfast is included.",
    chunks=[FLIGHTS, HOTELS],
    absent=["I found a good morning flight for you.", "The Bristol would be my choice."],
    invented=["Breakfast is included."],
)
def agents_as_tools(config):
    flights = create_agent(
        chat(calling("flights", query="Oslo"), "I found a good morning flight for you."),
        [searcher("flights", FLIGHTS)],
        name="flight_agent",
    )
    hotels = create_agent(
        chat(calling("hotels", query="Oslo"), "The Bristol would be my choice."),
        [searcher("hotels", HOTELS)],
        name="hotel_agent",
    )

    @tool
    def ask_flight_agent(request: str) -> str:
        """Ask about flights."""
        return flights.invoke(ask(request))["messages"][-1].text

    @tool
    def ask_hotel_agent(request: str) -> str:
        """Ask about hotels."""
        return hotels.invoke(ask(request))["messages"][-1].text

    supervisor = create_agent(
        chat(
            calling("ask_flight_agent", request="flight to Oslo"),
            calling("ask_hotel_agent", request="hotel in Oslo"),
            "Fly with KL 1780 at 9:25 and stay at the Hotel Bristol. Breakfast is included.",
        ),
        [ask_flight_agent, ask_hotel_agent],
    )
    supervisor.invoke(ask("Plan a trip to Oslo for me."), config)


@app(
    "agents as tools that are called at once, asynchronously",
    question="Wie komme ich nach Oslo und wo schlafe ich?",
    answer="Mit Flug KL 1780 um 9:25 Uhr; schlafen können Sie im Bristol ab 140 Euro.",
    chunks=[FLIGHTS, HOTELS],
    absent=["Morgens geht ein guter Flug.", "Ich empfehle das Bristol."],
)
async def agents_at_once(config):
    flights = create_agent(
        chat(calling("flights", query="Oslo"), "Morgens geht ein guter Flug."),
        [searcher("flights", FLIGHTS)],
    )
    hotels = create_agent(
        chat(calling("hotels", query="Oslo"), "Ich empfehle das Bristol."),
        [searcher("hotels", HOTELS)],
    )

    @tool
    async def fluege(auftrag: str) -> str:
        """Flüge."""
        return (await flights.ainvoke(ask(auftrag)))["messages"][-1].text

    @tool
    async def hotel(auftrag: str) -> str:
        """Hotels."""
        return (await hotels.ainvoke(ask(auftrag)))["messages"][-1].text

    supervisor = create_agent(
        chat(
            calling_all(("fluege", {"auftrag": "Oslo"}), ("hotel", {"auftrag": "Oslo"})),
            "Mit Flug KL 1780 um 9:25 Uhr; schlafen können Sie im Bristol ab 140 Euro.",
        ),
        [fluege, hotel],
    )
    await supervisor.ainvoke(ask("Wie komme ich nach Oslo und wo schlafe ich?"), config)


@app(
    "a hand-off from triage to a specialist",
    question="My parcel has not arrived.",
    answer="Your parcel is in Kassel and will come on Friday.",
    chunks=["Parcel 3381 reached Kassel; delivery is planned for Friday."],
    allowed=["Successfully transferred to shipping"],
)
def handed_off(config):
    @tool
    def transfer_to_shipping(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hand over to the shipping desk."""
        message = ToolMessage("Successfully transferred to shipping", tool_call_id=tool_call_id)
        return Command(goto="shipping", update={"messages": [message]}, graph=Command.PARENT)

    @tool
    def track(parcel: str) -> str:
        """Track a parcel."""
        return f"Parcel {parcel} reached Kassel; delivery is planned for Friday."

    triage = create_agent(chat(calling("transfer_to_shipping")), [transfer_to_shipping])
    shipping = create_agent(
        chat(calling("track", parcel="3381"), "Your parcel is in Kassel and will come on Friday."),
        [track],
    )
    graph = StateGraph(MessagesState)
    graph.add_node("triage", triage, destinations=("shipping",))
    graph.add_node("shipping", shipping)
    graph.add_edge(START, "triage")
    graph.add_edge("shipping", END)
    graph.compile().invoke(ask("My parcel has not arrived."), config)


class Debate(TypedDict, total=False):
    question: str
    documents: str
    pro: str
    contra: str
    verdict: str


@app(
    "two debaters and a judge who sees only their words",
    question="Should the town ban fireworks?",
    answer="Yes: last year 41 people were injured.",
    chunks=["Last year 41 people were injured by fireworks.", "The show brings 2,000 visitors."],
    absent=["Ban them, people get hurt every year.", "Keep them, the visitors pay the hotels."],
)
def debate(config):
    def gather(state: Debate):
        found = finding(
            "Last year 41 people were injured by fireworks.", "The show brings 2,000 visitors."
        ).invoke(state["question"])
        return {"documents": joined(found)}

    def pro(state: Debate):
        made = chat("Ban them, people get hurt every year.").invoke(
            f"Argue for it.\n{state['documents']}\n{state['question']}"
        )
        return {"pro": made.text}

    def contra(state: Debate):
        made = chat("Keep them, the visitors pay the hotels.").invoke(
            f"Argue against it.\n{state['documents']}\n{state['question']}"
        )
        return {"contra": made.text}

    def judge(state: Debate):
        made = chat("Yes: last year 41 people were injured.").invoke(
            f"{state['question']}\nPro: {state['pro']}\nContra: {state['contra']}\nDecide."
        )
        return {"verdict": made.text}

    graph = StateGraph(Debate)
    for node in (gather, pro, contra, judge):
        graph.add_node(node)
    graph.add_edge(START, "gather")
    graph.add_edge("gather", "pro")
    graph.add_edge("gather", "contra")
    graph.add_edge(["pro", "contra"], "judge")
    graph.add_edge("judge", END)
    graph.compile().invoke({"question": "Should the town ban fireworks?"}, config)


class Research(TypedDict, total=False):
    question: str
    topics: list[str]
    topic: str
    sections: Annotated[list[str], operator.add]
    report: str


RESEARCH = {
    "history": "The canal was dug between 1855 and 1861.",
    "trade": "Barges carry mostly gravel and grain today.",
}


@app(
    "a planner, researchers and a writer",
    question="Write a short report about the canal.",
    answer="The canal was dug from 1855 to 1861. Today it carries gravel and grain.",
    chunks=list(RESEARCH.values()),
    absent=["Section about the past of the canal.", "Section about boats and their cargo."],
)
async def researchers(config):
    async def plan(state: Research):
        made = await chat("history\ntrade").ainvoke(f"Topics for: {state['question']}")
        return {"topics": made.text.splitlines()}

    async def research(state: Research):
        found = await finding(RESEARCH[state["topic"]]).ainvoke(state["topic"])
        replies = {
            "history": "Section about the past of the canal.",
            "trade": "Section about boats and their cargo.",
        }
        made = await chat(replies[state["topic"]]).ainvoke(
            f"Write about {state['topic']} from:\n{joined(found)}"
        )
        return {"sections": [made.text]}

    async def write(state: Research):
        sections = "\n\n".join(state["sections"])
        made = await chat(
            "The canal was dug from 1855 to 1861. Today it carries gravel and grain."
        ).ainvoke([SystemMessage(f"Sections:\n{sections}"), HumanMessage(state["question"])])
        return {"report": made.text}

    graph = StateGraph(Research)
    for node in (plan, research, write):
        graph.add_node(node)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan",
        lambda state: [Send("research", {"topic": t}) for t in state["topics"]],
        ["research"],
    )
    graph.add_edge("research", "write")
    graph.add_edge("write", END)
    await graph.compile().ainvoke({"question": "Write a short report about the canal."}, config)


@app(
    "workers that report as named messages to a supervisor",
    question="How many people live in Graz and how high is its castle hill?",
    answer="About 300,000 people live in Graz, and its castle hill is 473 metres high.",
    chunks=["Graz has 302,000 inhabitants.", "The castle hill of Graz rises to 473 metres."],
    absent=["Population: roughly three hundred thousand.", "Height: 473 m, says my source."],
)
def named_workers(config):
    def supervisor(state: MessagesState):
        done = [each.name for each in state["messages"] if each.name]
        if "hills" not in done:
            return Command(goto="hills" if "people" in done else "people")
        made = chat(
            "About 300,000 people live in Graz, and its castle hill is 473 metres high."
        ).invoke([SystemMessage("Combine what your workers found."), *state["messages"]])
        return Command(goto=END, update={"messages": [made]})

    def worker(name, text, reply):
        def node(state: MessagesState):
            found = joined(finding(text).invoke("Graz"))
            made = chat(reply).invoke([SystemMessage(found), *state["messages"]])
            return Command(
                goto="supervisor", update={"messages": [HumanMessage(made.text, name=name)]}
            )

        return node

    graph = StateGraph(MessagesState)
    graph.add_node("supervisor", supervisor, destinations=("people", "hills", END))
    graph.add_node(
        "people",
        worker(
            "people",
            "Graz has 302,000 inhabitants.",
            "Population: roughly three hundred thousand.",
        ),
        destinations=("supervisor",),
    )
    graph.add_node(
        "hills",
        worker(
            "hills",
            "The castle hill of Graz rises to 473 metres.",
            "Height: 473 m, says my source.",
        ),
        destinations=("supervisor",),
    )
    graph.add_edge(START, "supervisor")
    graph.compile().invoke(
        ask("How many people live in Graz and how high is its castle hill?"), config
    )


@app(
    "a planner whose steps an executor works off",
    question="What is the hometown of the current chess champion?",
    answer="Gukesh, the champion, comes from Chennai.",
    chunks=["Gukesh Dommaraju is the world chess champion.", "Gukesh was born in Chennai."],
    absent=[
        "1. Find the champion. 2. Find the hometown.",
        "It is Gukesh.",
        "His hometown: Chennai!",
    ],
)
def plan_and_execute(config):
    class Plan(TypedDict, total=False):
        input: str
        plan: str
        past_steps: Annotated[list[tuple[str, str]], operator.add]
        response: str

    texts = ["Gukesh Dommaraju is the world chess champion.", "Gukesh was born in Chennai."]
    replies = ["It is Gukesh.", "His hometown: Chennai!"]

    def plan(state: Plan):
        made = chat("1. Find the champion. 2. Find the hometown.").invoke(
            f"Make a plan for: {state['input']}"
        )
        return {"plan": made.text}

    def execute(state: Plan):
        place = len(state.get("past_steps", []))
        worker = create_agent(
            chat(calling("search", query=f"step {place}"), replies[place]),
            [searcher("search", texts[place])],
        )
        made = worker.invoke(ask(f"For the plan {state['plan']} do step {place + 1}."))
        return {"past_steps": [(f"step {place + 1}", made["messages"][-1].text)]}

    def respond(state: Plan):
        steps = "\n".join(f"{step}: {result}" for step, result in state["past_steps"])
        made = chat("Gukesh, the champion, comes from Chennai.").invoke(
            f"Objective: {state['input']}\nDone:\n{steps}"
        )
        return {"response": made.text}

    graph = StateGraph(Plan)
    for node in (plan, execute, respond):
        graph.add_node(node)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "execute")
    graph.add_conditional_edges(
        "execute", lambda state: "respond" if len(state["past_steps"]) == 2 else "execute"
    )
    graph.add_edge("respond", END)
    graph.compile().invoke({"input": "What is the hometown of the current chess champion?"}, config)


@app(
    "a sub-agent whose one word decides",
    question="Which oil does the engine need?",
    answer="It needs 5W-30.",
    chunks=["Engine type M270 is filled with the thin winter oil of table four."],
    absent=["5W-30"],
)
def one_word_of_an_agent(config):
    expert = create_agent(
        chat(calling("manual", query="oil"), "5W-30"),
        [
            searcher(
                "manual",
                "Engine type M270 is filled with the thin winter oil of table four.",
            )
        ],
    )

    @tool
    def mechanic(question: str) -> str:
        """Ask the mechanic."""
        return expert.invoke(ask(question))["messages"][-1].text

    agent = create_agent(chat(calling("mechanic", question="oil?"), "It needs 5W-30."), [mechanic])
    agent.invoke(ask("Which oil does the engine need?"), config)


@app(
    "a reflection loop between two agents",
    question="Write a product text for the tent.",
    answer="A tent for two that weighs 1.4 kilograms and keeps you dry. Made in Finland.",
    prompt=["The tent weighs 1.4 kilograms, sleeps two and is waterproof to 3,000 millimetres."],
    absent=["Great tent, very light, buy now!", "Be more concrete about weight and size, please."],
    invented=["Made in Finland."],
)
def reflection(config):
    writer = chat(
        "Great tent, very light, buy now!",
        "A tent for two that weighs 1.4 kilograms and keeps you dry. Made in Finland.",
    )
    system = SystemMessage(
        "Facts: "
        + joined(
            finding(
                "The tent weighs 1.4 kilograms, sleeps two and is waterproof to 3,000 millimetres."
            ).documents
        )
    )

    def generate(state: MessagesState):
        return {"messages": [writer.invoke([system, *state["messages"]])]}

    def reflect(state: MessagesState):
        critic = chat("Be more concrete about weight and size, please.")
        swapped = [
            AIMessage(m.text) if isinstance(m, HumanMessage) else HumanMessage(m.text)
            for m in state["messages"]
        ]
        return {"messages": [HumanMessage(critic.invoke(swapped).text)]}

    graph = StateGraph(MessagesState)
    graph.add_node("generate", generate)
    graph.add_node("reflect", reflect)
    graph.add_edge(START, "generate")
    graph.add_conditional_edges(
        "generate", lambda state: END if len(state["messages"]) > 3 else "reflect"
    )
    graph.add_edge("reflect", "generate")
    graph.compile().invoke(ask("Write a product text for the tent."), config)

"""Agents with the middleware that LangChain ships."""

from harness import app
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ModelFallbackMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    before_agent,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import calling, chat, finding, joined
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel


@app(
    "tool results that context editing has cleared",
    question="Compare the rent in Aarhus with the rent in Odense.",
    answer="Odense costs 4,900 kroner a month on average.",
    chunks=["Average rent in Odense: 4,900 kroner a month."],
    allowed=["Average rent in Aarhus: 6,200 kroner a month. "],
)
def cleared(config):
    @tool
    def rent(city: str) -> str:
        """Rent of a city."""
        return {
            "Aarhus": "Average rent in Aarhus: 6,200 kroner a month.",
            "Odense": "Average rent in Odense: 4,900 kroner a month.",
        }[city]

    agent = create_agent(
        chat(
            calling("rent", city="Aarhus"),
            calling("rent", city="Odense"),
            "Odense costs 4,900 kroner a month on average.",
        ),
        [rent],
        middleware=[ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=1)])],
    )
    agent.invoke(
        {"messages": [HumanMessage("Compare the rent in Aarhus with the rent in Odense.")]}, config
    )


@app(
    "an agent that keeps a list of what to do",
    question="Find out when the museum opens and what it costs.",
    answer="The museum opens at 10 and costs 14 EUR.",
    chunks=[
        "The museum opens at 10 every day but Monday.",
        "Tickets to the museum are 14 EUR, children enter free.",
    ],
    absent=["Look up the opening hours"],
)
def todos(config):
    @tool
    def search(query: str) -> str:
        """Search the site."""
        return (
            "The museum opens at 10 every day but Monday."
            if "open" in query
            else "Tickets to the museum are 14 EUR, children enter free."
        )

    def todo(first, second):
        return calling(
            "write_todos",
            todos=[
                {"content": "Look up the opening hours", "status": first},
                {"content": "Look up the price", "status": second},
            ],
        )

    agent = create_agent(
        chat(
            todo("in_progress", "pending"),
            calling("search", query="when does the museum open"),
            todo("completed", "in_progress"),
            calling("search", query="price of tickets"),
            "The museum opens at 10 and costs 14 EUR.",
        ),
        [search],
        middleware=[TodoListMiddleware()],
    )
    agent.invoke(
        {
            "messages": [
                {"role": "user", "content": "Find out when the museum opens and what it costs."}
            ]
        },
        config,
    )


@app(
    "a structured response that is asked for again after a wrong one",
    question="Our server room is at 41 degrees, what now?",
    answer=["critical", "Shut down the racks in row B first."],
    chunks=["Above 40 degrees the racks in row B are shut down first."],
    absent=["Keep everything running."],
)
def structured_again(config):
    runbook = create_retriever_tool(
        finding("Above 40 degrees the racks in row B are shut down first."), "runbook", "Runbooks."
    )
    agent = create_agent(
        chat(
            calling("runbook", query="temperature 41"),
            calling("Triage", advice="Keep everything running."),
            calling("Triage", severity="critical", advice="Shut down the racks in row B first."),
        ),
        [runbook],
        response_format=ToolStrategy(Triage),
    )
    agent.invoke(
        {"messages": [HumanMessage("Our server room is at 41 degrees, what now?")]}, config
    )


class Shop(AgentState):
    customer: str


@app(
    "a middleware that retrieves before the agent starts",
    question="Can I bring my own wine?",
    answer="Yes, for a corkage fee of 18 EUR a bottle.",
    chunks=["Guests may bring their own wine; corkage is 18 EUR a bottle."],
)
def before(config):
    retriever = finding("Guests may bring their own wine; corkage is 18 EUR a bottle.")

    @before_agent
    def look_up(state, runtime):
        docs = retriever.invoke(state["messages"][-1].text)
        return {"messages": [SystemMessage(f"House rules:\n{joined(docs)}")]}

    agent = create_agent(
        chat("Yes, for a corkage fee of 18 EUR a bottle."), [], middleware=[look_up]
    )
    agent.invoke({"messages": [HumanMessage("Can I bring my own wine?")]}, config)


@app(
    "a summarised conversation with an invention of the first turn that comes again",
    question="So when does the course begin, again?",
    answer="The pottery course has eight evenings. The teacher is called Rosa.",
    chunks=["Pottery course: begins 4 May, eight evenings."],
    absent=["The teacher is called Rosa."],
    invented=["The teacher is called Rosa."],
    cases=3,
)
def summarised(config):
    search = create_retriever_tool(
        finding("Pottery course: begins 4 May, eight evenings."), "courses", "Courses."
    )

    def reply(messages):
        last = messages[-1]
        if "again" in last.text:
            return calling("courses", query="pottery begin")
        if last.type == "tool" and any("again" in m.text for m in messages):
            return "It begins on 4 May. The teacher is called Rosa."
        if last.type == "tool":
            return "The pottery course has eight evenings. The teacher is called Rosa."
        return calling("courses", query="pottery") if "pottery" in last.text else "You are welcome."

    agent = create_agent(
        chat(reply),
        [search],
        middleware=[
            SummarizationMiddleware(
                model=chat("The user asked about pottery; the teacher is called Rosa."),
                trigger=("messages", 5),
                keep=("messages", 1),
            )
        ],
        checkpointer=InMemorySaver(),
    )
    given = {**config, "configurable": {"thread_id": "s"}}
    for text in (
        "Tell me of the pottery course.",
        "Thanks!",
        "So when does the course begin, again?",
    ):
        agent.invoke({"messages": [HumanMessage(text)]}, given)


@app(
    "a fallback model after the first one failed in the second step",
    question="What is the dose of ibuprofen for a child of 20 kg?",
    answer="Up to 200 mg per dose, three times a day.",
    chunks=["Ibuprofen for children: up to 10 mg per kg and dose, three times a day."],
    invented=[],
)
def fallback(config):
    def fail(messages):
        if messages[-1].type == "tool":
            raise TimeoutError("overloaded")
        return calling("leaflet", query="ibuprofen children dose")

    leaflet = create_retriever_tool(
        finding("Ibuprofen for children: up to 10 mg per kg and dose, three times a day."),
        "leaflet",
        "Leaflets.",
    )
    agent = create_agent(
        chat(fail),
        [leaflet],
        middleware=[ModelFallbackMiddleware(chat("Up to 200 mg per dose, three times a day."))],
    )
    agent.invoke(
        {"messages": [HumanMessage("What is the dose of ibuprofen for a child of 20 kg?")]}, config
    )


class Triage(BaseModel):
    severity: str
    advice: str

"""Agents whose middleware adds texts, changes prompts or removes messages."""

from harness import app
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelRequest,
    PIIMiddleware,
    SummarizationMiddleware,
    before_model,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import calling, chat, finding, joined, store


def ask(text):
    return {"messages": [HumanMessage(text)]}


@app(
    "documents in a dynamic prompt",
    question="Where do I register my dog?",
    answer="At the town hall, room 12. A tag costs 9 EUR.",
    prompt=["Dogs are registered at the town hall, room 12.", "The dog tax is 90 EUR a year."],
    invented=["A tag costs 9 EUR."],
)
def in_a_dynamic_prompt(config):
    texts = store("Dogs are registered at the town hall, room 12.", "The dog tax is 90 EUR a year.")

    @dynamic_prompt
    def with_context(request: ModelRequest) -> str:
        query = request.state["messages"][-1].text
        found = texts.similarity_search(query, k=2)
        return f"Use this context in your answer:\n\n{joined(found)}"

    agent = create_agent(
        chat("At the town hall, room 12. A tag costs 9 EUR."), [], middleware=[with_context]
    )
    agent.invoke(ask("Where do I register my dog?"), config)


@app(
    "documents that a middleware appends to the last message",
    question="Wie lange ist der Pass gültig?",
    answer="Der Pass ist zehn Jahre gültig.",
    prompt=["Ein Reisepass ist für Personen ab 24 Jahren zehn Jahre gültig."],
)
def appended_to_the_message(config):
    texts = store("Ein Reisepass ist für Personen ab 24 Jahren zehn Jahre gültig.")

    class Retrieve(AgentMiddleware):
        def before_model(self, state: AgentState, runtime):
            last = state["messages"][-1]
            found = joined(texts.similarity_search(last.text, k=1))
            asked = f"{last.text}\n\nNutze dabei diesen Kontext:\n{found}"
            return {"messages": [last.model_copy(update={"content": asked})]}

    agent = create_agent(chat("Der Pass ist zehn Jahre gültig."), [], middleware=[Retrieve()])
    agent.invoke(ask("Wie lange ist der Pass gültig?"), config)


@app(
    "a fact that a middleware adds before each call",
    question="Can I still order for delivery today?",
    answer="Yes, it is 10:40 and orders until noon are delivered today.",
    chunks=["Orders until noon are delivered on the same day."],
    prompt=["Current time: 10:40"],
)
def added_before_the_call(config):
    @before_model
    def clock(state, runtime):
        if not any(isinstance(each, SystemMessage) for each in state["messages"]):
            return {"messages": [SystemMessage("Current time: 10:40")]}
        return None

    faq = create_retriever_tool(
        finding("Orders until noon are delivered on the same day."), "faq", "Search the FAQ."
    )
    model = chat(
        calling("faq", query="same day delivery"),
        "Yes, it is 10:40 and orders until noon are delivered today.",
    )
    create_agent(model, [faq], middleware=[clock]).invoke(
        ask("Can I still order for delivery today?"), config
    )


@app(
    "a system prompt that a wrapper extends",
    question="Do you ship to Iceland?",
    answer="Yes, we ship to Iceland for 24 EUR. It takes two weeks.",
    prompt=["Shipping to Iceland and Norway costs 24 EUR."],
    invented=["It takes two weeks."],
)
async def extended_system_prompt(config):
    @wrap_model_call
    async def with_policy(request, handler):
        policy = "Shipping to Iceland and Norway costs 24 EUR."
        text = f"{request.system_message.text}\n\n# Policy\n{policy}"
        return await handler(request.override(system_message=SystemMessage(text)))

    agent = create_agent(
        chat("Yes, we ship to Iceland for 24 EUR. It takes two weeks."),
        [],
        system_prompt="You are a shop assistant.",
        middleware=[with_policy],
    )
    await agent.ainvoke(ask("Do you ship to Iceland?"), config)


@app(
    "files that a wrapper names in the messages of a call",
    question="Which of my files mentions the merger?",
    answer="The file board.md mentions the merger.",
    prompt=["board.md: minutes of the board about the merger", "lunch.md: canteen menu"],
)
def files_in_a_call(config):
    class Files(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            known = (
                "Files in this conversation:\n- board.md: minutes of the board about the merger\n"
                "- lunch.md: canteen menu"
            )
            return handler(request.override(messages=[*request.messages, HumanMessage(known)]))

    agent = create_agent(chat("The file board.md mentions the merger."), [], middleware=[Files()])
    agent.invoke(ask("Which of my files mentions the merger?"), config)


@app(
    "tool results that a wrapper rewrites",
    question="What is the balance of the account?",
    answer="The balance is 240 EUR.",
    chunks=["balance: 240 EUR"],
    absent=["iban DE02 1234"],
)
def rewritten_results(config):
    @tool
    def account(customer: str) -> str:
        """Reads the account."""
        return "balance: 240 EUR; iban DE02 1234"

    @wrap_tool_call
    def hide(request, handler):
        result = handler(request)
        text = result.content.partition(";")[0]
        return ToolMessage(text, tool_call_id=result.tool_call_id, name=result.name)

    model = chat(calling("account", customer="C-1"), "The balance is 240 EUR.")
    create_agent(model, [account], middleware=[hide]).invoke(
        ask("What is the balance of the account?"), config
    )


@app(
    "a conversation that a middleware summarises",
    question="So which of the two is cheaper?",
    answer="The tram pass is cheaper.",
    chunks=["A tram pass costs 58 EUR a month.", "A parking permit costs 140 EUR a month."],
    absent=["The user compares a tram pass with a parking permit."],
)
def summarised(config):
    prices = create_retriever_tool(
        finding("A tram pass costs 58 EUR a month.", "A parking permit costs 140 EUR a month."),
        "prices",
        "Looks up prices.",
    )
    agent = create_agent(
        chat(calling("prices", query="tram pass parking permit"), "The tram pass is cheaper."),
        [prices],
        middleware=[
            SummarizationMiddleware(
                model=chat("The user compares a tram pass with a parking permit."),
                trigger=("messages", 5),
                keep=("messages", 1),
            )
        ],
    )
    earlier = [
        HumanMessage("Hello, I want to get to work."),
        AIMessage("By car or by tram?"),
        HumanMessage("I do not know yet."),
        AIMessage("Shall I compare them?"),
    ]
    agent.invoke({"messages": [*earlier, HumanMessage("So which of the two is cheaper?")]}, config)


@app(
    "addresses that a middleware redacts",
    question="Who do I write to about my locker?",
    answer="Write to the caretaker at the address that the tool gave.",
    chunks=["The caretaker is in charge of lockers:"],
    absent=["caretaker@house.example"],
)
def redacted(config):
    @tool
    def contacts(topic: str) -> str:
        """Who is in charge."""
        return "The caretaker is in charge of lockers: caretaker@house.example"

    model = chat(
        calling("contacts", topic="locker"),
        "Write to the caretaker at the address that the tool gave.",
    )
    middleware = PIIMiddleware(
        "email", strategy="redact", apply_to_input=False, apply_to_tool_results=True
    )
    create_agent(model, [contacts], middleware=[middleware]).invoke(
        ask("Who do I write to about my locker?"), config
    )


@app(
    "a middleware that removes old messages",
    question="And how much is it for children?",
    answer="Children pay half.",
    chunks=["Children under twelve pay half the price."],
    absent=["A dog travels free of charge."],
)
def removed(config):
    @before_model
    def forget(state, runtime):
        old = [each for each in state["messages"][:-1] if each.id and each.id.startswith("old")]
        return {"messages": [RemoveMessage(id=each.id) for each in old]} if old else None

    tariff = create_retriever_tool(
        finding("Children under twelve pay half the price."), "tariff", "Looks up the tariff."
    )
    old_call = calling("tariff", query="dog")
    messages = [
        HumanMessage("What does a dog cost?", id="old-1"),
        old_call.model_copy(update={"id": "old-2"}),
        ToolMessage(
            "A dog travels free of charge.", tool_call_id=old_call.tool_calls[0]["id"], id="old-3"
        ),
        AIMessage("Nothing.", id="old-4"),
        HumanMessage("And how much is it for children?"),
    ]
    model = chat(calling("tariff", query="children"), "Children pay half.")
    create_agent(model, [tariff], middleware=[forget]).invoke({"messages": messages}, config)

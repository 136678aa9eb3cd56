"""Applications whose prompt has more variables than the context: policies, profiles, memories."""

from operator import itemgetter
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, FewShotPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import tool
from langchain_fakes import calling, chat, finding, joined, store
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

RETURNS = "Bicycles can be returned within thirty days if they were not ridden."
GOLD = "Gold members may return anything within ninety days."


@app(
    "a user's profile beside the documents",
    question="Until when can I return my bicycle?",
    answer="As a gold member you have ninety days. The shipping is on us.",
    chunks=[RETURNS, GOLD],
    prompt=["Membership: gold"],
    invented=["The shipping is on us."],
)
def profile(config):
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Documents:\n{context}\n\nCustomer:\n{profile}"),
            ("human", "{question}"),
        ]
    )
    chain = (
        RunnablePassthrough.assign(
            context=itemgetter("question") | finding(RETURNS, GOLD) | joined,
            profile=lambda given: "Name: Kim Berg\nMembership: gold",
        )
        | prompt
        | chat("As a gold member you have ninety days. The shipping is on us.")
        | StrOutputParser()
    )
    chain.invoke({"question": "Until when can I return my bicycle?"}, config)


@app(
    "house rules given as a partial variable",
    question="Darf ich mein Fahrrad in den Flur stellen?",
    answer="Nein, im Flur dürfen laut Hausordnung keine Fahrräder stehen.",
    chunks=["Fahrräder gehören in den Keller oder in den Hof."],
    prompt=["Im Flur dürfen keine Fahrräder stehen."],
)
def partial_variable(config):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Hausordnung: {rules}\n\nFundstellen: {context}"), ("human", "{question}")]
    ).partial(rules="Im Flur dürfen keine Fahrräder stehen. Ruhezeit ist ab 22 Uhr.")
    chain = (
        {
            "context": finding("Fahrräder gehören in den Keller oder in den Hof.") | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("Nein, im Flur dürfen laut Hausordnung keine Fahrräder stehen.")
        | StrOutputParser()
    )
    chain.invoke("Darf ich mein Fahrrad in den Flur stellen?", config)


@app(
    "an input that the prompt shows beside the context",
    question="Does my insurance pay for the windscreen?",
    answer="Yes, with partial cover the windscreen is paid, less 150 EUR.",
    chunks=["Partial cover pays for glass damage."],
    prompt=["Contract 88-1: partial cover, deductible 150 EUR"],
)
def contract(config):
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Context: {context}\nThe customer's contract: {contract}"),
            ("human", "{input}"),
        ]
    )
    model = chat("Yes, with partial cover the windscreen is paid, less 150 EUR.")
    chain = create_retrieval_chain(
        finding("Partial cover pays for glass damage."),
        create_stuff_documents_chain(model, prompt),
    )
    asked = {
        "input": "Does my insurance pay for the windscreen?",
        "contract": "Contract 88-1: partial cover, deductible 150 EUR",
    }
    chain.invoke(asked, config)


@app(
    "memories from a store",
    question="What should I cook tonight?",
    answer="Try the lentil curry, since you do not eat meat and are allergic to peanuts.",
    prompt=["The user does not eat meat.", "The user is allergic to peanuts.", "Lentil curry"],
)
def memories(config):
    memory = InMemoryStore()
    memory.put(("memories", "u-7"), "a", {"data": "The user does not eat meat."})
    memory.put(("memories", "u-7"), "b", {"data": "The user is allergic to peanuts."})

    def call_model(state: MessagesState, *, store):
        known = "\n".join(item.value["data"] for item in store.search(("memories", "u-7")))
        system = SystemMessage(f"Menu: Lentil curry, beef stew.\nUser info:\n{known}")
        model = chat("Try the lentil curry, since you do not eat meat and are allergic to peanuts.")
        return {"messages": model.invoke([system, *state["messages"]])}

    graph = StateGraph(MessagesState)
    graph.add_node("call_model", call_model)
    graph.add_edge(START, "call_model")
    graph.compile(store=memory).invoke(
        {"messages": [{"role": "user", "content": "What should I cook tonight?"}]}, config
    )


@app(
    "texts under a key of their own",
    question="Wat kost parkeren in de binnenstad?",
    answer="Parkeren in de binnenstad kost 4 euro per uur.",
    prompt=[
        "Parkeren in de binnenstad kost 4 euro per uur.",
        "Na acht uur 's avonds is parkeren gratis.",
    ],
)
async def own_key(config):
    class State(TypedDict, total=False):
        vraag: str
        fragmenten: list[str]
        antwoord: str

    texts = store(
        "Parkeren in de binnenstad kost 4 euro per uur.",
        "Na acht uur 's avonds is parkeren gratis.",
    )

    async def zoek(state: State):
        found = await texts.asimilarity_search(state["vraag"], k=2)
        return {"fragmenten": [each.page_content for each in found]}

    async def schrijf(state: State):
        asked = "Fragmenten:\n- " + "\n- ".join(state["fragmenten"]) + f"\n\n{state['vraag']}"
        reply = await chat("Parkeren in de binnenstad kost 4 euro per uur.").ainvoke(asked)
        return {"antwoord": reply.text}

    graph = StateGraph(State)
    graph.add_sequence([zoek, schrijf])
    graph.add_edge(START, "zoek")
    await graph.compile().ainvoke({"vraag": "Wat kost parkeren in de binnenstad?"}, config)


@app(
    "an agent's memory in its system prompt and a tool",
    question="Book me the usual table.",
    answer="Done: the table by the window is booked for two at half past seven.",
    chunks=["Booked: window, 2 persons, 19:30, reference R-553."],
    prompt=["The usual table is the one by the window, for two, at 19:30."],
)
def memory_of_an_agent(config):
    @tool
    def book(table: str, persons: int, time: str) -> str:
        """Book a table."""
        return f"Booked: {table}, {persons} persons, {time}, reference R-553."

    known = "The usual table is the one by the window, for two, at 19:30."
    model = chat(
        calling("book", table="window", persons=2, time="19:30"),
        "Done: the table by the window is booked for two at half past seven.",
    )
    agent = create_agent(model, [book], system_prompt=f"You book tables.\n<memory>{known}</memory>")
    agent.invoke({"messages": [("user", "Book me the usual table.")]}, config)


@app(
    "two retrievers, each with its own variable",
    question="Which plugs are used in Malta, and do I need a visa?",
    answer="Malta uses type G plugs; EU citizens need no visa.",
    chunks=["Malta uses type G plugs.", "Citizens of the EU need no visa for Malta."],
)
def two_variables(config):
    prompt = ChatPromptTemplate.from_template(
        "Facts: {facts}\nEntry rules: {rules}\nQuestion: {question}"
    )
    chain = (
        RunnableParallel(
            facts=finding("Malta uses type G plugs.") | joined,
            rules=finding("Citizens of the EU need no visa for Malta.") | joined,
            question=RunnablePassthrough(),
        )
        | prompt
        | chat("Malta uses type G plugs; EU citizens need no visa.")
        | StrOutputParser()
    )
    list(chain.stream("Which plugs are used in Malta, and do I need a visa?", config))


@app(
    "numbers that a function measured",
    question="Is the pump all right?",
    answer="No: at 4.2 bar the pressure is above the limit of 3.5 bar. Its seal is broken.",
    chunks=["The pump must not run above 3.5 bar."],
    prompt=["pressure=4.2 bar"],
    invented=["Its seal is broken."],
)
def measured(config):
    def sensors(_):
        return "pressure=4.2 bar, flow=11 l/min, vibration=low"

    prompt = ChatPromptTemplate.from_template(
        "Manual:\n{manual}\n\nSensors now: {now}\n\n{question}"
    )
    chain = (
        {
            "manual": finding("The pump must not run above 3.5 bar.") | joined,
            "now": RunnableLambda(sensors),
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("No: at 4.2 bar the pressure is above the limit of 3.5 bar. Its seal is broken.")
        | StrOutputParser()
    )
    chain.batch(["Is the pump all right?"], config)


@app(
    "a question in the middle of a template with the date",
    question="Is the library open today?",
    answer="Yes, today is Saturday and the library is open until two.",
    chunks=["On Saturdays the library is open from ten to two."],
    prompt=["Saturday, 14 June"],
)
def date(config):
    prompt = PromptTemplate.from_template(
        "Today is {today}.\nQuestion: {question}\nContext: {context}\nBe brief."
    )
    chain = (
        {
            "context": finding("On Saturdays the library is open from ten to two.") | joined,
            "question": RunnablePassthrough(),
            "today": lambda _: "Saturday, 14 June",
        }
        | prompt
        | chat("Yes, today is Saturday and the library is open until two.")
        | StrOutputParser()
    )
    chain.invoke("Is the library open today?", config)


@app(
    "few-shot examples around the documents",
    question="What is the capital of the canton of Uri?",
    answer="Altdorf.",
    chunks=["Altdorf is the capital of the canton of Uri."],
)
def few_shot(config):
    one = PromptTemplate.from_template("Q: {q}\nA: {a}")
    prompt = FewShotPromptTemplate(
        examples=[{"q": "What is the capital of Bern?", "a": "Bern."}],
        example_prompt=one,
        prefix="Answer from: {context}",
        suffix="Q: {question}\nA:",
        input_variables=["context", "question"],
    )
    chain = (
        {
            "context": finding("Altdorf is the capital of the canton of Uri.") | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("Altdorf.")
        | StrOutputParser()
    )
    chain.invoke("What is the capital of the canton of Uri?", config)


@app(
    "an uploaded form beside the retriever",
    question="Which tax class fits me?",
    answer="Tax class III fits, since you are married and your spouse earns nothing.",
    chunks=["Class III is for married persons whose spouse earns little or nothing."],
    prompt=["marital status: married", "income of the spouse: none"],
)
def uploaded_form(config):
    def answer(given):
        rules = finding(
            "Class III is for married persons whose spouse earns little or nothing."
        ).invoke(given["question"])
        form = "\n".join(f"{key}: {value}" for key, value in given["form"].items())
        messages = [
            SystemMessage(f"Rules:\n{joined(rules)}"),
            HumanMessage(f"My form:\n{form}\n\n{given['question']}"),
        ]
        model = chat("Tax class III fits, since you are married and your spouse earns nothing.")
        return model.invoke(messages).text

    form = {"marital status": "married", "children": 0, "income of the spouse": "none"}
    RunnableLambda(answer).invoke({"question": "Which tax class fits me?", "form": form}, config)

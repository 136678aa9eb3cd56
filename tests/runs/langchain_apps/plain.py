"""Plain functions without a chain around search and model, under a handler of the process."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from harness import app
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_fakes import Completing, chat, finding, joined

RULES = "Quiet hours in the dormitory begin at ten in the evening."
PETS = "Pets are allowed after written consent of the house manager."


@app(
    "a function that searches, then asks",
    question="When do quiet hours begin?",
    answer="Quiet hours begin at ten in the evening.",
    chunks=[RULES, PETS],
    attached=True,
)
def plain(config):
    retriever, model = finding(RULES, PETS), chat("Quiet hours begin at ten in the evening.")

    def ask(question):
        docs = retriever.invoke(question)
        prompt = f"Answer using the context.\n\nContext:\n{joined(docs)}\n\nQuestion: {question}"
        return model.invoke(prompt).content

    ask("When do quiet hours begin?")


@app(
    "a function with messages and an invention",
    question="Darf ich einen Hund halten?",
    answer="Ja, mit schriftlicher Zustimmung der Hausverwaltung. Katzen sind verboten.",
    chunks=["Haustiere sind mit schriftlicher Zustimmung der Hausverwaltung erlaubt."],
    invented=["Katzen sind verboten."],
    attached=True,
)
def messages(config):
    question = "Darf ich einen Hund halten?"
    docs = finding(
        "Haustiere sind mit schriftlicher Zustimmung der Hausverwaltung erlaubt."
    ).invoke(question)
    model = chat("Ja, mit schriftlicher Zustimmung der Hausverwaltung. Katzen sind verboten.")
    model.invoke([SystemMessage(f"Nutze nur diese Texte:\n{joined(docs)}"), HumanMessage(question)])


@app(
    "an asynchronous function",
    question="What is the wifi password?",
    answer="The password is on the back of the router.",
    chunks=["The wifi password is printed on the back of the router."],
    attached=True,
)
async def asynchronous(config):
    async def ask(question):
        docs = await finding("The wifi password is printed on the back of the router.").ainvoke(
            question
        )
        model = chat("The password is on the back of the router.")
        reply = await model.ainvoke([("system", joined(docs)), ("human", question)])
        return reply.text

    await ask("What is the wifi password?")


@app(
    "a search, then a chain of prompt and model",
    question="Where do I leave my keys?",
    answer="Leave the keys in the box by the door.",
    chunks=["Keys are left in the box by the door.", "Check-out is at eleven."],
    attached=True,
)
def prompt_and_model(config):
    question = "Where do I leave my keys?"
    docs = finding("Keys are left in the box by the door.", "Check-out is at eleven.").invoke(
        question
    )
    prompt = ChatPromptTemplate.from_template("Context: {context}\n\nQuestion: {question}")
    chain = prompt | chat("Leave the keys in the box by the door.") | StrOutputParser()
    chain.invoke({"context": joined(docs), "question": question})


@app(
    "a function that streams",
    question="Is there a lift?",
    answer="Yes, the lift is behind the reception.",
    chunks=["The lift is behind the reception."],
    attached=True,
)
def streaming(config):
    def ask(question):
        docs = finding("The lift is behind the reception.").invoke(question)
        for piece in chat("Yes, the lift is behind the reception.").stream(
            f"{joined(docs)}\n\n{question}"
        ):
            yield piece.content

    "".join(ask("Is there a lift?"))


@app(
    "a rewritten query in a plain function",
    question="and on sundays?",
    answer="On Sundays breakfast is served until noon.",
    chunks=["On Sundays breakfast is served until noon."],
    absent=["When is breakfast served on Sundays?"],
    attached=True,
)
def rewritten(config):
    question = "and on sundays?"
    history = [HumanMessage("When is breakfast?"), AIMessage("From seven to ten.")]
    query = chat("When is breakfast served on Sundays?").invoke(
        [SystemMessage("Rewrite the last question."), *history, HumanMessage(question)]
    )
    docs = finding("On Sundays breakfast is served until noon.").invoke(query.text)
    chat("On Sundays breakfast is served until noon.").invoke(
        [SystemMessage(joined(docs)), *history, HumanMessage(question)]
    )


@app(
    "three requests in threads",
    question="Who waters the plants?",
    answer="The gardener waters the plants.",
    chunks=["The gardener waters the plants on Fridays."],
    absent=["The porter sorts the mail.", "The cook bakes on Mondays."],
    cases=3,
    attached=True,
)
def threads(config):
    asked = {
        "Who waters the plants?": (
            "The gardener waters the plants on Fridays.",
            "The gardener waters the plants.",
        ),
        "Who sorts the mail?": ("The porter sorts the mail.", "The porter sorts it."),
        "Who bakes the bread?": ("The cook bakes on Mondays.", "The cook bakes it."),
    }

    def ask(question):
        text, reply = asked[question]
        docs = finding(text).invoke(question)
        return chat(reply).invoke(f"{joined(docs)}\n\n{question}").text

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(ask, asked))


@app(
    "two requests in tasks",
    question="Wo ist der Waschraum?",
    answer="Der Waschraum ist im Keller.",
    chunks=["Der Waschraum liegt im Keller neben der Heizung."],
    absent=["Der Trockenraum liegt unter dem Dach."],
    cases=2,
    attached=True,
)
async def tasks(config):
    async def ask(question, text, reply):
        docs = await finding(text).ainvoke(question)
        await asyncio.sleep(0.01)
        return (await chat(reply).ainvoke(f"{joined(docs)}\n\n{question}")).text

    await asyncio.gather(
        ask(
            "Wo ist der Waschraum?",
            "Der Waschraum liegt im Keller neben der Heizung.",
            "Der Waschraum ist im Keller.",
        ),
        ask(
            "Wo ist der Trockenraum?",
            "Der Trockenraum liegt unter dem Dach.",
            "Der Trockenraum ist oben.",
        ),
    )


@app(
    "a completion model in a plain function",
    question="What does the blue light mean?",
    answer=" The blue light means standby.",
    chunks=["Blue: the device is on standby. Red: no signal."],
    attached=True,
)
def completion(config):
    question = "What does the blue light mean?"
    docs = finding("Blue: the device is on standby. Red: no signal.").invoke(question)
    Completing(replies=[" The blue light means standby."]).invoke(
        f"{joined(docs)}\n\nQ: {question}\nA:"
    )


@app(
    "a chain below an attached handler",
    question="When is the bin emptied?",
    answer="The bin is emptied on Wednesdays. It is brown.",
    chunks=["The bins are emptied on Wednesdays."],
    invented=["It is brown."],
    attached=True,
)
def attached_chain(config):
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    chain = (
        {
            "context": finding("The bins are emptied on Wednesdays.") | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("The bin is emptied on Wednesdays. It is brown.")
        | StrOutputParser()
    )
    chain.invoke("When is the bin emptied?")


@app(
    "a model's client that is none of LangChain's",
    question="Can I bake in the tower?",
    answer="Yes, the oven in the tower kitchen is for everybody.",
    chunks=["The oven in the tower kitchen may be used by everybody."],
)
def own_client(config):
    class Client:
        """Speaks to a provider directly."""

        def complete(self, prompt):
            return "Yes, the oven in the tower kitchen is for everybody."

    def ask(question):
        docs = finding("The oven in the tower kitchen may be used by everybody.").invoke(question)
        return Client().complete(f"{joined(docs)}\n\n{question}")

    RunnableLambda(ask).invoke("Can I bake in the tower?", config)


@app(
    "rules without a model",
    question="What is the fare to zone 3?",
    answer="The fare to zone 3 is 4.10 EUR.",
    chunks=["Zone 3: 4.10 EUR", "Zone 4: 5.20 EUR"],
)
def without_a_model(config):
    def ask(question):
        docs = finding("Zone 3: 4.10 EUR", "Zone 4: 5.20 EUR").invoke(question)
        zone, _, fare = docs[0].page_content.partition(": ")
        return f"The fare to {zone.lower()} is {fare}."

    RunnableLambda(ask).invoke("What is the fare to zone 3?", config)

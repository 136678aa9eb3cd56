"""Other keys, forms and languages of known shapes."""

import asyncio
import json
from operator import itemgetter
from typing import Literal, TypedDict

from harness import app
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import PydanticOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough, chain
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import Completing, Found, calling, chat, finding, joined
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel

PROMPT = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])


def sources(*texts):
    return {"context": finding(*texts) | joined, "question": RunnablePassthrough()}


def ask(text):
    return {"messages": [HumanMessage(text)]}


# --- answers --------------------------------------------------------------------------------------


@app(
    "an envelope of an API with a status and a body",
    question="When is the gym closed?",
    answer="The gym is closed on public holidays.",
    chunks=["On public holidays the gym stays closed."],
    status="no_answer",
)
def envelope(config):
    application = (
        sources("On public holidays the gym stays closed.")
        | PROMPT
        | chat("The gym is closed on public holidays.")
        | StrOutputParser()
        | (lambda text: {"ok": True, "statusCode": 200, "body": {"reply": {"text": text}}})
    )
    application.invoke("When is the gym closed?", config)


@app(
    "a pros and cons list of a model",
    question="Soll ich das Dach begrünen?",
    answer=["Es kühlt im Sommer.", "Es muss zweimal im Jahr gepflegt werden.", "Es ist verboten."],
    chunks=["Gründächer kühlen im Sommer und brauchen zweimal im Jahr Pflege."],
)
def pros_and_cons(config):
    class Weighed(BaseModel):
        pros: list[str]
        cons: list[str]

    parser = PydanticOutputParser(pydantic_object=Weighed)
    reply = json.dumps(
        {
            "pros": ["Es kühlt im Sommer."],
            "cons": ["Es muss zweimal im Jahr gepflegt werden.", "Es ist verboten."],
        }
    )
    application = (
        sources("Gründächer kühlen im Sommer und brauchen zweimal im Jahr Pflege.")
        | PROMPT
        | chat(f"```json\n{reply}\n```")
        | parser
    )
    application.invoke("Soll ich das Dach begrünen?", config)


@app(
    "an essay whose grade is in the state",
    question="Explain why bread rises.",
    answer="Yeast makes gas, which lifts the dough.",
    chunks=["Yeast ferments sugar into carbon dioxide, which lifts dough."],
    absent=["9/10, clear and short"],
    status="no_answer",
)
def graded(config):
    class State(TypedDict, total=False):
        task: str
        essay: str
        grade: str

    def write(state: State):
        docs = finding("Yeast ferments sugar into carbon dioxide, which lifts dough.")
        asked = f"{joined(docs.invoke(state['task']))}\n\n{state['task']}"
        return {"essay": chat("Yeast makes gas, which lifts the dough.").invoke(asked).text}

    def grade(state: State):
        return {"grade": chat("9/10, clear and short").invoke(f"Grade: {state['essay']}").text}

    graph = StateGraph(State)
    graph.add_sequence([write, grade])
    graph.add_edge(START, "write")
    graph.compile().invoke({"task": "Explain why bread rises."}, config)


@app(
    "a tool call that hands over the result",
    question="Wer darf die Sauna nutzen?",
    answer="Die Sauna dürfen Hausbewohner ab 16 Jahren nutzen.",
    chunks=["Sauna: nur Hausbewohner, Mindestalter 16"],
)
async def handed_over(config):
    @tool
    async def hausordnung(thema: str) -> str:
        """Schlägt nach."""
        return "Sauna: nur Hausbewohner, Mindestalter 16"

    @tool(return_direct=True)
    async def antworten(text: str) -> str:
        """Gibt die Antwort ab."""
        return text

    model = chat(
        calling("hausordnung", thema="Sauna"),
        calling("antworten", text="Die Sauna dürfen Hausbewohner ab 16 Jahren nutzen."),
    )
    await create_agent(model, [hausordnung, antworten]).ainvoke(
        ask("Wer darf die Sauna nutzen?"), config
    )


@app(
    "a choice of a few words with its reason",
    question="Is the claim about the bridge true?",
    answer=["refuted", "The bridge opened in 1932, not in 1923."],
    chunks=["The bridge was opened to traffic on 19 March 1932."],
)
def verdict(config):
    class Verdict(BaseModel):
        label: Literal["supported", "refuted"]
        why: str

    called = calling("Verdict", label="refuted", why="The bridge opened in 1932, not in 1923.")

    @tool
    def archive(query: str) -> str:
        """Search the archive."""
        return "The bridge was opened to traffic on 19 March 1932."

    create_agent(
        chat(calling("archive", query="bridge"), called),
        [archive],
        response_format=ToolStrategy(Verdict),
    ).invoke(ask("Is the claim about the bridge true?"), config)


@app(
    "two languages of one answer",
    question="Where do I pay?",
    answer=["Pay at the machine.", "Bezahlen Sie am Automaten."],
    chunks=["Payment is made at the machine by the exit."],
    # A model wrote one from the other, as it would a grade: nothing tells them apart.
    status="no_answer",
)
def two_languages(config):
    english = (
        sources("Payment is made at the machine by the exit.")
        | PROMPT
        | chat("Pay at the machine.")
    )
    german = PromptTemplate.from_template("In German: {english}") | chat(
        "Bezahlen Sie am Automaten."
    )
    application = RunnableParallel(english=english | StrOutputParser()).assign(
        german=german | StrOutputParser()
    )
    application.invoke("Where do I pay?", config)


@app(
    "an answer in a message of a custom role",
    question="How do I clean the filter?",
    answer="Rinse the filter under warm water. Replace it yearly.",
    chunks=["Filter: rinse under warm water, let it dry."],
    invented=["Replace it yearly."],
)
def named_message(config):
    def node(state: MessagesState):
        docs = finding("Filter: rinse under warm water, let it dry.")
        context = SystemMessage(joined(docs.invoke(state["messages"][-1].text)))
        made = chat("Rinse the filter under warm water. Replace it yearly.").invoke(
            [context, *state["messages"]]
        )
        return {"messages": [AIMessage(made.text, name="service_desk")]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    list(graph.compile().stream(ask("How do I clean the filter?"), config))


# --- short prompts and facts beside documents -----------------------------------------------------


@app(
    "a name and a role, nothing else",
    question="Whom do I call?",
    answer="Call Ida Brandt.",
    prompt=["Porter on duty: Ida Brandt"],
)
def name_and_role(config):
    def answer(given):
        messages = [SystemMessage("Porter on duty: Ida Brandt"), HumanMessage(given["question"])]
        return chat("Call Ida Brandt.").invoke(messages).content

    RunnableLambda(answer).invoke({"question": "Whom do I call?"}, config)


@app(
    "one word of a state in the prompt",
    question="Was hat der Kunde bestellt?",
    answer="Der Kunde hat eine Stehlampe bestellt.",
    prompt=["Stehlampe"],
)
def one_word(config):
    prompt = ChatPromptTemplate.from_template("Bestellung: {artikel}\n\n{frage}")
    application = (
        RunnablePassthrough.assign(artikel=lambda _: "Stehlampe")
        | prompt
        | chat("Der Kunde hat eine Stehlampe bestellt.")
        | StrOutputParser()
    )
    application.invoke({"frage": "Was hat der Kunde bestellt?"}, config)


@app(
    "YAML front matter before each document",
    question="Who maintains the parser?",
    answer="Okonkwo maintains the parser.",
    chunks=["The parser reads tables and lists."],
    prompt=["maintainer: Okonkwo"],
)
def front_matter(config):
    found = Found(
        documents=[
            Document("The parser reads tables and lists.", metadata={"maintainer": "Okonkwo"})
        ]
    )

    def written(docs):
        return "\n".join(
            f"---\nmaintainer: {doc.metadata['maintainer']}\n---\n{doc.page_content}"
            for doc in docs
        )

    application = (
        {"context": found | written, "question": RunnablePassthrough()}
        | PROMPT
        | chat("Okonkwo maintains the parser.")
        | StrOutputParser()
    )
    application.invoke("Who maintains the parser?", config)


@app(
    "documents as JSON with their metadata",
    question="Which of the two cafés allows dogs?",
    answer="Café Mila allows dogs.",
    chunks=["Café Mila is at the river.", "Café Otto is at the market."],
    prompt=["dogs allowed", "no dogs"],
)
def json_documents(config):
    found = Found(
        documents=[
            Document("Café Mila is at the river.", metadata={"pets": "dogs allowed"}),
            Document("Café Otto is at the market.", metadata={"pets": "no dogs"}),
        ]
    )

    def dumped(docs):
        return json.dumps(
            [{"text": d.page_content, **d.metadata} for d in docs], ensure_ascii=False
        )

    application = (
        {"context": found | dumped, "question": RunnablePassthrough()}
        | PROMPT
        | chat("Café Mila allows dogs.")
    )
    application.invoke("Which of the two cafés allows dogs?", config)


@app(
    "the weather of a function beside an agent's search",
    question="Soll ich die Tour machen?",
    answer="Nein, am Nachmittag gewittert es und der Grat ist ausgesetzt.",
    chunks=["Der Grat ist ausgesetzt und ohne Schutzhütte."],
    prompt=["Wetter heute: Gewitter am Nachmittag"],
)
def weather_beside_search(config):
    def call(state: MessagesState):
        system = SystemMessage("Du bist Bergführer. Wetter heute: Gewitter am Nachmittag")
        return {"messages": [model.invoke([system, *state["messages"]])]}

    def tools(state: MessagesState):
        (made,) = state["messages"][-1].tool_calls
        text = joined(finding("Der Grat ist ausgesetzt und ohne Schutzhütte.").invoke(made["name"]))
        return {"messages": [ToolMessage(text, tool_call_id=made["id"])]}

    model = chat(
        calling("tour", name="Grat"),
        "Nein, am Nachmittag gewittert es und der Grat ist ausgesetzt.",
    )
    graph = StateGraph(MessagesState)
    graph.add_node(call)
    graph.add_node(tools)
    graph.add_edge(START, "call")
    graph.add_conditional_edges(
        "call", lambda state: "tools" if state["messages"][-1].tool_calls else END
    )
    graph.add_edge("tools", "call")
    graph.compile().invoke(ask("Soll ich die Tour machen?"), config)


# --- models' words --------------------------------------------------------------------------------


@app(
    "a sub-answer inside a tool's JSON with another fact",
    question="How do I reach the doctor?",
    answer="Call 0361 5544; the practice is in the Lange Gasse.",
    chunks=["The practice of the doctor is in the Lange Gasse."],
    prompt=["0361 5544"],
    absent=["You will find the practice near the old town wall."],
)
def fact_beside_a_sub_answer(config):
    @tool
    def practice(question: str) -> str:
        """Ask about the practice."""
        docs = finding("The practice of the doctor is in the Lange Gasse.").invoke(question)
        made = chat("You will find the practice near the old town wall.").invoke(
            f"{joined(docs)}\n{question}"
        )
        return json.dumps({"answer": made.text, "phone": "0361 5544"})

    model = chat(
        calling("practice", question="address"),
        "Call 0361 5544; the practice is in the Lange Gasse.",
    )
    create_agent(model, [practice]).invoke(ask("How do I reach the doctor?"), config)


@app(
    "a sentence around a colleague's reply",
    question="Can the invoice be split?",
    answer="Yes, an invoice can be split into three parts.",
    chunks=["Invoices above 300 EUR may be paid in three parts."],
    absent=["Splitting works for large sums."],
)
async def sentence_around(config):
    expert = create_agent(
        chat(calling("rules", query="split"), "Splitting works for large sums."),
        [
            create_retriever_tool(
                finding("Invoices above 300 EUR may be paid in three parts."), "rules", "Rules."
            )
        ],
    )

    @tool
    async def ask_billing(text: str) -> str:
        """Ask the billing agent."""
        made = await expert.ainvoke(ask(text))
        return f'The billing agent replied: "{made["messages"][-1].text}"'

    model = chat(
        calling("ask_billing", text="split?"), "Yes, an invoice can be split into three parts."
    )
    await create_agent(model, [ask_billing]).ainvoke(ask("Can the invoice be split?"), config)


@app(
    "a model's summary made into a document",
    question="What did the council decide?",
    answer="The council decided to plant 40 trees.",
    chunks=["Minutes: it was resolved unanimously that 40 trees be planted in Rosen Street."],
    absent=["Tree planting was agreed on."],
)
def summary_as_a_document(config):
    def condense(docs):
        made = chat("Tree planting was agreed on.").invoke(f"Condense: {joined(docs)}")
        return [Document(made.text, metadata={"kind": "summary"})]

    application = (
        {
            "context": finding(
                "Minutes: it was resolved unanimously that 40 trees be planted in Rosen Street."
            )
            | condense
            | joined,
            "question": RunnablePassthrough(),
        }
        | PROMPT
        | chat("The council decided to plant 40 trees.")
        | StrOutputParser()
    )
    application.invoke("What did the council decide?", config)


@app(
    "a conversation kept as text lines",
    question="和第二家呢？",
    answer="第二家餐厅周日营业。",
    chunks=["第二家餐厅每天营业，包括周日。"],
    absent=["第一家餐厅周日休息。"],
)
def lines_of_a_conversation(config):
    prompt = ChatPromptTemplate.from_template(
        "对话记录：\n{history}\n\n资料：{context}\n\n问题：{question}"
    )
    application = (
        RunnablePassthrough.assign(
            context=itemgetter("question") | finding("第二家餐厅每天营业，包括周日。") | joined
        )
        | prompt
        | chat("第二家餐厅周日营业。")
        | StrOutputParser()
    )
    history = [("user", "第一家餐厅周日开门吗？"), ("assistant", "第一家餐厅周日休息。")]
    lines = "\n".join(f"{role}: {text}" for role, text in history)
    application.invoke({"question": "和第二家呢？", "history": lines}, config)


@app(
    "an earlier invention that is repeated",
    question="So how much is it with breakfast?",
    answer="With breakfast it is 99 EUR. There is a rooftop bar.",
    chunks=["Breakfast costs 14 EUR extra.", "A room costs 85 EUR."],
    absent=["We have a rooftop bar, too."],
    invented=["There is a rooftop bar."],
)
def repeated_invention(config):
    search = create_retriever_tool(
        finding("Breakfast costs 14 EUR extra.", "A room costs 85 EUR."), "prices", "Prices."
    )
    agent = create_agent(
        chat(
            calling("prices", query="breakfast"),
            "With breakfast it is 99 EUR. There is a rooftop bar.",
        ),
        [search],
    )
    messages = [
        HumanMessage("Do you have rooms?"),
        AIMessage("Yes. We have a rooftop bar, too."),
        HumanMessage("So how much is it with breakfast?"),
    ]
    agent.invoke({"messages": messages}, config)


# --- questions ------------------------------------------------------------------------------------


@app(
    "a form with a question among its fields",
    question="Why was my card declined?",
    answer="Your card was declined because it expired in April.",
    chunks=["Code 54: the card has expired."],
    prompt=["expired in April"],
)
def form(config):
    @chain
    def handle(form):
        docs = finding("Code 54: the card has expired.").invoke(form["issue"])
        asked = (
            f"Codes:\n{joined(docs)}\n\nCard: {form['card']['status']}\n\n"
            f"Customer {form['name']} asks: {form['issue']}"
        )
        reply = chat("Your card was declined because it expired in April.").invoke(asked)
        return {"ticket": form["ticket"], "reply": reply.text}

    handle.invoke(
        {
            "ticket": "T-2201",
            "name": "Jon Ask",
            "card": {"last4": "1881", "status": "expired in April"},
            "issue": "Why was my card declined?",
        },
        config,
    )


@app(
    "a text to translate, no question",
    question="Translate the text into English.",
    answer="The museum is closed on Mondays.",
    prompt=["Das Museum ist montags geschlossen."],
    status=["no_question", "not_rag"],
)
def translation(config):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Translate the text into {language}."), ("human", "{text}")]
    )
    (prompt | chat("The museum is closed on Mondays.") | StrOutputParser()).invoke(
        {"language": "English", "text": "Das Museum ist montags geschlossen."}, config
    )


@app(
    "a chat of messages as dictionaries with parts",
    question="What is the voltage of this lamp?",
    answer="The lamp runs on 12 volts.",
    chunks=["LED lamp L3: 12 V, 4 W"],
)
def dictionaries_with_parts(config):
    search = create_retriever_tool(finding("LED lamp L3: 12 V, 4 W"), "lamps", "Lamps.")
    message = {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is the voltage of this lamp?"},
            {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
        ],
    }
    model = chat(calling("lamps", query="L3"), "The lamp runs on 12 volts.")
    create_agent(model, [search]).invoke({"messages": [message]}, config)


# --- provider's search, plain functions -----------------------------------------------------------


@app(
    "a plain function with two searches and a tool loop",
    question="Can I take the dog on the bus to the zoo?",
    answer="Yes on the bus, but dogs are not allowed in the zoo.",
    chunks=["Dogs ride free on buses.", "No dogs in the zoo."],
    attached=True,
)
def two_searches(config):
    buses, zoo = finding("Dogs ride free on buses."), finding("No dogs in the zoo.")
    model = chat("Yes on the bus, but dogs are not allowed in the zoo.")

    def answer(question):
        docs = [*buses.invoke(question), *zoo.invoke(question)]
        return model.invoke([("system", joined(docs)), ("user", question)]).text

    answer("Can I take the dog on the bus to the zoo?")


@app(
    "a plain function in two turns",
    question="And on Saturday?",
    answer="On Saturday we close at one.",
    chunks=["Saturday: 9 to 13"],
    absent=["On weekdays we close at six, always."],
    cases=2,
    attached=True,
)
def two_plain_turns(config):
    history = []
    texts = {
        "Until when are you open?": "Weekdays: 9 to 18",
        "And on Saturday?": "Saturday: 9 to 13",
    }
    model = chat("On weekdays we close at six, always.", "On Saturday we close at one.")
    for question, text in texts.items():
        docs = finding(text).invoke(question)
        reply = model.invoke([SystemMessage(joined(docs)), *history, HumanMessage(question)])
        history += [HumanMessage(question), reply]


@app(
    "a guard that asks a model whether the answer is safe",
    question="Which mushroom is this?",
    answer="It is a chanterelle.",
    chunks=["Chanterelles are yellow and smell of apricots."],
    absent=["safe, no medical claim"],
)
def guard(config):
    @chain
    def answer(question):
        docs = finding("Chanterelles are yellow and smell of apricots.").invoke(question)
        reply = chat("It is a chanterelle.").invoke(f"{joined(docs)}\n\n{question}").text
        verdict = chat("safe, no medical claim").invoke(f"Is this safe to say? {reply}").text
        return reply if verdict.startswith("safe") else "I must not say."

    answer.invoke("Which mushroom is this?", config)


@app(
    "a completion model with stop words in a chain",
    question="Hvor høyt er fjellet?",
    answer="Fjellet er 1883 meter høyt.",
    chunks=["Gaustatoppen er 1883 meter over havet."],
    prompt=["Norsk ordbok: fjell = mountain"],
)
def completion(config):
    prompt = PromptTemplate.from_template(
        "Norsk ordbok: fjell = mountain\n\n{context}\n\nSpørsmål: {question}\nSvar:"
    )
    application = (
        sources("Gaustatoppen er 1883 meter over havet.")
        | prompt
        | Completing(replies=["Fjellet er 1883 meter høyt."])
    )
    asyncio.run(application.ainvoke("Hvor høyt er fjellet?", config))

"""Applications with a history: messages, pairs, summaries, checkpointers, memories of turns."""

from operator import itemgetter
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_classic.chains import (
    ConversationalRetrievalChain,
    create_history_aware_retriever,
    create_retrieval_chain,
)
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, trim_messages
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import create_retriever_tool, tool
from langchain_fakes import Found, calling, chat, finding, joined
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

POOL = "The pool opens at seven."
SAUNA = "The sauna costs 14 EUR for two hours."


@app(
    "a history-aware retrieval chain",
    question="And what does it cost?",
    answer="The sauna costs 14 EUR for two hours.",
    chunks=[SAUNA, POOL],
    absent=["What does the sauna cost?", "Yes, we have a sauna in the basement."],
)
def history_aware(config):
    rewriting = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history"), ("human", "{input}"), ("human", "Rewrite it.")]
    )
    retriever = create_history_aware_retriever(
        chat("What does the sauna cost?"), finding(SAUNA, POOL), rewriting
    )
    answering = ChatPromptTemplate.from_messages(
        [("system", "{context}"), MessagesPlaceholder("chat_history"), ("human", "{input}")]
    )
    stuff = create_stuff_documents_chain(chat("The sauna costs 14 EUR for two hours."), answering)
    history = [
        HumanMessage("Do you have a sauna?"),
        AIMessage("Yes, we have a sauna in the basement."),
    ]
    create_retrieval_chain(retriever, stuff).invoke(
        {"input": "And what does it cost?", "chat_history": history}, config
    )


@app(
    "two turns with a message history",
    question="Und am Sonntag?",
    answer="Sonntags öffnet das Bad um neun. Kinder haben freien Eintritt.",
    chunks=["Sonntags öffnet das Bad um neun Uhr.", "Werktags öffnet das Bad um sieben Uhr."],
    absent=["Werktags ab sieben, viel Spaß beim Schwimmen!"],
    invented=["Kinder haben freien Eintritt."],
    cases=2,
)
def two_turns(config):
    history = InMemoryChatMessageHistory()
    prompt = ChatPromptTemplate.from_messages(
        [("system", "{context}"), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    found = finding(
        "Sonntags öffnet das Bad um neun Uhr.", "Werktags öffnet das Bad um sieben Uhr."
    )
    model = chat(
        "Werktags ab sieben, viel Spaß beim Schwimmen!",
        "Sonntags öffnet das Bad um neun. Kinder haben freien Eintritt.",
    )
    rag = RunnablePassthrough.assign(context=itemgetter("question") | found | joined)
    turns = RunnableWithMessageHistory(
        rag | prompt | model | StrOutputParser(),
        lambda _: history,
        input_messages_key="question",
        history_messages_key="history",
    )
    config = {**config, "configurable": {"session_id": "s-1"}}
    for question in ("Wann öffnet das Bad?", "Und am Sonntag?"):
        turns.invoke({"question": question}, config)


@app(
    "an agent with a checkpointer in its second turn",
    question="How much for a dog?",
    answer="A dog costs 8 EUR a night.",
    chunks=["A dog costs 8 EUR a night."],
    prompt=["A tent costs 21 EUR a night."],
    absent=["Your tent would be twenty-one euros."],
    cases=2,
)
async def second_turn(config):
    @tool
    async def price(item: str) -> str:
        """Look up a price."""
        prices = {"tent": "A tent costs 21 EUR a night.", "dog": "A dog costs 8 EUR a night."}
        return prices[item]

    model = chat(
        calling("price", item="tent"),
        "Your tent would be twenty-one euros.",
        calling("price", item="dog"),
        "A dog costs 8 EUR a night.",
    )
    agent = create_agent(model, [price], checkpointer=InMemorySaver())
    config = {**config, "configurable": {"thread_id": "t-1"}}
    for question in ("How much for a tent?", "How much for a dog?"):
        await agent.ainvoke({"messages": [HumanMessage(question)]}, config)


@app(
    "a graph whose state keeps the last turn's documents",
    question="Is parking included?",
    answer="Parking costs 12 EUR a day.",
    chunks=["Parking costs 12 EUR a day."],
    absent=["Breakfast is served from seven to ten.", "It starts at seven."],
    cases=2,
)
def kept_documents(config):
    class State(TypedDict, total=False):
        question: str
        documents: list[Document]
        answer: str

    answers = {
        "When is breakfast?": ("Breakfast is served from seven to ten.", "It starts at seven."),
        "Is parking included?": ("Parking costs 12 EUR a day.", "Parking costs 12 EUR a day."),
    }

    def retrieve(state: State):
        return {"documents": finding(answers[state["question"]][0]).invoke(state["question"])}

    def generate(state: State):
        asked = f"{joined(state['documents'])}\n\n{state['question']}"
        return {"answer": chat(answers[state["question"]][1]).invoke(asked).text}

    graph = StateGraph(State)
    graph.add_sequence([retrieve, generate])
    graph.add_edge(START, "retrieve")
    compiled = graph.compile(checkpointer=InMemorySaver())
    config = {**config, "configurable": {"thread_id": "guest"}}
    for question in answers:
        compiled.invoke({"question": question}, config)


@app(
    "a history written into the prompt as text",
    question="What about the second one?",
    answer="The second flat has a garden.",
    chunks=["Flat B has a garden of 40 square metres."],
    absent=["There are two flats in your price range."],
)
def history_as_text(config):
    prompt = ChatPromptTemplate.from_template(
        "Chat so far:\n{history}\n\nContext:\n{context}\n\nHuman: {question}\nAI:"
    )
    chain = (
        RunnablePassthrough.assign(
            context=itemgetter("question")
            | finding("Flat B has a garden of 40 square metres.")
            | joined
        )
        | prompt
        | chat("The second flat has a garden.")
        | StrOutputParser()
    )
    history = "Human: What flats do you have?\nAI: There are two flats in your price range."
    chain.invoke({"question": "What about the second one?", "history": history}, config)


@app(
    "the classic chain with a condensed question",
    question="Wer hat sie gebaut?",
    answer="Die Brücke wurde von der Firma Klett gebaut.",
    chunks=["Die Brücke baute die Firma Klett aus Nürnberg."],
    absent=["Wer hat die Eisenbahnbrücke gebaut?", "Sie ist aus dem Jahr 1856."],
)
def condensed(config):
    chain = ConversationalRetrievalChain.from_llm(
        chat("Die Brücke wurde von der Firma Klett gebaut."),
        finding("Die Brücke baute die Firma Klett aus Nürnberg."),
        condense_question_llm=chat("Wer hat die Eisenbahnbrücke gebaut?"),
    )
    history = [("Wie alt ist die Eisenbahnbrücke?", "Sie ist aus dem Jahr 1856.")]
    chain.invoke({"question": "Wer hat sie gebaut?", "chat_history": history}, config)


@app(
    "a running summary of the conversation",
    question="Which of them opens later?",
    answer="The bakery opens later, at eight.",
    chunks=["The butcher opens at six, the bakery at eight."],
    absent=["The customer asks about shops near the station."],
)
def running_summary(config):
    class Chat(MessagesState):
        summary: str

    def summarise(state: Chat):
        text = "\n".join(each.text for each in state["messages"][:-1])
        made = chat("The customer asks about shops near the station.").invoke(f"Sum up:\n{text}")
        return {"summary": made.text}

    def answer(state: Chat):
        question = state["messages"][-1].text
        found = finding("The butcher opens at six, the bakery at eight.").invoke(question)
        system = SystemMessage(f"Summary: {state['summary']}\n\nContext: {joined(found)}")
        model = chat("The bakery opens later, at eight.")
        return {"messages": [model.invoke([system, HumanMessage(question)])]}

    graph = StateGraph(Chat)
    graph.add_sequence([summarise, answer])
    graph.add_edge(START, "summarise")
    messages = [
        HumanMessage("What shops are there near the station?"),
        AIMessage("A butcher and a bakery."),
        HumanMessage("Which of them opens later?"),
    ]
    graph.compile().invoke({"messages": messages}, config)


@app(
    "a fact that the user gave in an earlier turn",
    question="How long will it take me?",
    answer="From Ulm it takes you two hours by train.",
    chunks=["Trains from Ulm to Basel take two hours."],
    prompt=["I live in Ulm and want to go to Basel."],
    absent=["Nice, by train or by car?"],
)
def earlier_fact(config):
    lookup = create_retriever_tool(
        finding("Trains from Ulm to Basel take two hours."), "timetable", "Looks up trains."
    )
    agent = create_agent(
        chat(calling("timetable", query="Ulm Basel"), "From Ulm it takes you two hours by train."),
        [lookup],
    )
    messages = [
        {"role": "user", "content": "I live in Ulm and want to go to Basel."},
        {"role": "assistant", "content": "Nice, by train or by car?"},
        {"role": "user", "content": "How long will it take me?"},
    ]
    agent.invoke({"messages": messages}, config)


@app(
    "messages that are trimmed before the model sees them",
    question="Which size do I need?",
    answer="Size 42 fits a foot of 26.5 centimetres.",
    chunks=["Size 42 fits feet of 26.2 to 26.8 centimetres."],
    absent=["Our winter boots are sold out.", "The voucher is WINTER10."],
)
def trimmed(config):
    sizes = finding("Size 42 fits feet of 26.2 to 26.8 centimetres.")

    def answer(state: MessagesState):
        kept = trim_messages(state["messages"], strategy="last", token_counter=len, max_tokens=1)
        system = SystemMessage(joined(sizes.invoke(kept[-1].text)))
        model = chat("Size 42 fits a foot of 26.5 centimetres.")
        return {"messages": [model.invoke([system, *kept])]}

    graph = StateGraph(MessagesState)
    graph.add_node(answer)
    graph.add_edge(START, "answer")
    messages = [
        HumanMessage("The voucher is WINTER10."),
        AIMessage("Our winter boots are sold out."),
        HumanMessage("Which size do I need?"),
    ]
    graph.compile().invoke({"messages": messages}, config)


@app(
    "memories that a search over earlier turns finds",
    question="What was the name of the wine I liked?",
    answer="It was the Blaufränkisch from Burgenland.",
    prompt=["I loved the Blaufränkisch from Burgenland"],
    absent=["Noted, a fine choice from Austria."],
)
def found_turns(config):
    turns = [
        HumanMessage("I loved the Blaufränkisch from Burgenland, please remember it."),
        AIMessage("Noted, a fine choice from Austria."),
    ]

    def answer(given):
        past = [Document(f"{each.type}: {each.text}") for each in turns]
        memory = Found(documents=past).invoke(given["question"])
        asked = [
            SystemMessage("Relevant pieces of the conversation:\n" + joined(memory)),
            HumanMessage(given["question"]),
        ]
        return chat("It was the Blaufränkisch from Burgenland.").invoke(asked).content

    RunnableLambda(answer).invoke({"question": "What was the name of the wine I liked?"}, config)


LAMP = "The Aurora lamp weighs 310 grams."
HALL = "The hall has forty seats."
SHORT = [HumanMessage("Is it red?"), AIMessage("Sure.")]
AFTER_A_SHORT_QUESTION = {
    "question": "Tell me about the Aurora lamp",
    "answer": "It weighs 310 grams. It is red.",
    "chunks": [LAMP, HALL],
    "absent": ["Is it red", "Sure"],
    "invented": ["It is red."],
}


def after_short_turns(prompt, config, **given):
    search = {"context": itemgetter("question") | finding(LAMP, HALL) | joined}
    model = chat(AFTER_A_SHORT_QUESTION["answer"])
    chain = RunnablePassthrough.assign(**search) | prompt | model | StrOutputParser()
    chain.invoke({"question": AFTER_A_SHORT_QUESTION["question"], **given}, config)


@app("a chain after a short question and a short answer", **AFTER_A_SHORT_QUESTION)
def short_messages(config):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "{context}"), MessagesPlaceholder("chat_history"), ("human", "{question}")]
    )
    after_short_turns(prompt, config, chat_history=SHORT)


@app("a short question and a short answer that a prompt is written with", **AFTER_A_SHORT_QUESTION)
def short_lines(config):
    prompt = ChatPromptTemplate.from_template("{context}\n\n{talk}\nHuman: {question}\nAI:")
    after_short_turns(prompt, config, talk="Human: Is it red?\nAI: Sure.")


@app(
    "an agent after a short question",
    **{**AFTER_A_SHORT_QUESTION, "chunks": [f"{LAMP}\n{HALL}"], "cases": 2},
)
def short_thread(config):
    @tool
    def search(query: str) -> str:
        """Search the catalogue."""
        return f"{LAMP}\n{HALL}"

    asked, answer = AFTER_A_SHORT_QUESTION["question"], AFTER_A_SHORT_QUESTION["answer"]
    agent = create_agent(chat("Sure.", calling("search", query="Aurora"), answer), [search])
    messages = agent.invoke({"messages": [SHORT[0]]}, config)["messages"]
    agent.invoke({"messages": [*messages, HumanMessage(asked)]}, config)

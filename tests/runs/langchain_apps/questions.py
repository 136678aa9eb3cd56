"""Applications whose question is built of several inputs, or comes in an odd form."""

import json
from operator import itemgetter
from typing import TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from langchain_core.tools import create_retriever_tool
from langchain_fakes import calling, chat, finding, joined
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

REFUND = "Refunds to Norway are paid within twelve days."


@app(
    "a topic and an audience",
    question="Refunds",
    answer="Dear new customers in Norway, refunds are paid within twelve days.",
    chunks=[REFUND],
    status="no_question",
)
def topic_and_audience(config):
    prompt = ChatPromptTemplate.from_template(
        "Write about {topic} for {audience}.\n\nSources:\n{sources}"
    )
    application = (
        RunnablePassthrough.assign(sources=itemgetter("topic") | finding(REFUND) | joined)
        | prompt
        | chat("Dear new customers in Norway, refunds are paid within twelve days.")
        | StrOutputParser()
    )
    application.invoke({"topic": "Refunds", "audience": "new customers in Norway"}, config)


@app(
    "a subject and a tone, in a graph",
    question="Streik am Flughafen",
    answer="Am Donnerstag fallen 40 Flüge aus. Züge fahren normal.",
    chunks=["Am Donnerstag wird gestreikt, 40 Flüge fallen aus."],
    invented=["Züge fahren normal."],
)
def subject_and_tone(config):
    class State(TypedDict, total=False):
        subject: str
        tone: str
        notes: str
        text: str

    def research(state: State):
        found = finding("Am Donnerstag wird gestreikt, 40 Flüge fallen aus.")
        return {"notes": joined(found.invoke(state["subject"]))}

    def write(state: State):
        made = chat("Am Donnerstag fallen 40 Flüge aus. Züge fahren normal.").invoke(
            f"Schreibe {state['tone']} über {state['subject']}.\n{state['notes']}"
        )
        return {"text": made.text}

    graph = StateGraph(State)
    graph.add_sequence([research, write])
    graph.add_edge(START, "research")
    graph.compile().invoke({"subject": "Streik am Flughafen", "tone": "knapp"}, config)


@app(
    "a question beside settings",
    question="How do I reset the thermostat?",
    answer="Hold the left button for ten seconds.",
    chunks=["To reset the thermostat, hold the left button for ten seconds."],
)
def beside_settings(config):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer in {language}, at most {words} words.\n{docs}"), ("human", "{q}")]
    )
    application = (
        RunnablePassthrough.assign(
            docs=itemgetter("q")
            | finding("To reset the thermostat, hold the left button for ten seconds.")
            | joined
        )
        | prompt
        | chat("Hold the left button for ten seconds.")
    )
    asked = {"language": "English", "words": 30, "q": "How do I reset the thermostat?"}
    application.invoke({**asked, "user": {"id": 17, "plan": "pro"}}, config)


@app(
    "a nested request of an interface",
    question="Wann kommt der Techniker?",
    answer="Der Techniker kommt am Dienstag zwischen acht und zehn.",
    chunks=["Auftrag 5512: Dienstag, 8 bis 10 Uhr"],
)
async def nested_request(config):
    async def handle(request):
        text = request["body"]["message"]["text"]
        docs = await finding("Auftrag 5512: Dienstag, 8 bis 10 Uhr").ainvoke(text)
        made = await chat("Der Techniker kommt am Dienstag zwischen acht und zehn.").ainvoke(
            f"{joined(docs)}\n\n{text}"
        )
        return {"reply": made.content}

    request = {
        "id": "r-1",
        "body": {"message": {"text": "Wann kommt der Techniker?", "locale": "de"}},
    }
    await RunnableLambda(handle).ainvoke(request, config)


class Request(BaseModel):
    customer_id: str
    question: str
    urgent: bool = False


@app(
    "a Pydantic object as the input",
    question="Can I change my seat?",
    answer="Yes, for 9 EUR until an hour before departure.",
    chunks=["Seats can be changed for 9 EUR until an hour before departure."],
)
def pydantic_input(config):
    @chain
    def ask(request: Request):
        docs = finding("Seats can be changed for 9 EUR until an hour before departure.").invoke(
            request.question
        )
        model = chat("Yes, for 9 EUR until an hour before departure.")
        return model.invoke(f"{joined(docs)}\n\n{request.question}").text

    ask.invoke(Request(customer_id="C-3", question="Can I change my seat?"), config)


@app(
    "a message with a picture",
    question="Which bird is this?",
    answer="It is a hoopoe. Hoopoes live in Africa in winter.",
    chunks=["The hoopoe has an orange crest.", "Hoopoes spend the winter in Africa."],
)
def picture(config):
    search = create_retriever_tool(
        finding("The hoopoe has an orange crest.", "Hoopoes spend the winter in Africa."),
        "birds",
        "Looks up birds.",
    )
    model = chat(
        calling("birds", query="orange crest"),
        "It is a hoopoe. Hoopoes live in Africa in winter.",
    )
    message = HumanMessage(
        [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "text", "text": "Which bird is this?"},
        ]
    )
    create_agent(model, [search]).invoke({"messages": [message]}, config)


@app(
    "an instruction and a text to classify",
    question="Is this message urgent? Answer yes or no.",
    answer="yes",
    prompt=["The cellar is under water and the pump has stopped."],
)
def classified(config):
    prompt = ChatPromptTemplate.from_messages([("system", "{question}"), ("human", "{message}")])
    application = prompt | chat("yes") | StrOutputParser()
    application.invoke(
        {
            "question": "Is this message urgent? Answer yes or no.",
            "message": "The cellar is under water and the pump has stopped.",
        },
        config,
    )


@app(
    "a question in the second message of two",
    question="What is the pH of the soil?",
    answer="The pH is 6.4. Lime is not needed.",
    chunks=["Sample 8: pH 6.4, phosphorus low"],
    invented=["Lime is not needed."],
)
def two_human_messages(config):
    def answer(state: MessagesState):
        docs = finding("Sample 8: pH 6.4, phosphorus low").invoke(state["messages"][-1].text)
        asked = [HumanMessage(f"Laboratory:\n{joined(docs)}"), *state["messages"]]
        return {"messages": [chat("The pH is 6.4. Lime is not needed.").invoke(asked)]}

    graph = StateGraph(MessagesState)
    graph.add_node(answer)
    graph.add_edge(START, "answer")
    graph.compile().invoke(
        {"messages": [HumanMessage("Hello!"), HumanMessage("What is the pH of the soil?")]}, config
    )


@app(
    "a question that the template wraps",
    question="Can I plant tomatoes in April?",
    answer="No, wait until the middle of May.",
    chunks=["Tomatoes are planted out after the middle of May."],
)
def wrapped_by_a_template(config):
    prompt = PromptTemplate.from_template(
        "You are a gardener.\nNotes: {notes}\nThe customer asks: '{question}'. Reply politely."
    )
    application = (
        {
            "notes": finding("Tomatoes are planted out after the middle of May.") | joined,
            "question": RunnablePassthrough() | str.strip,
        }
        | prompt
        | chat("No, wait until the middle of May.")
        | StrOutputParser()
    )
    application.invoke("  Can I plant tomatoes in April?\n", config)


@app(
    "a request as JSON text",
    question="Which wine goes with the trout?",
    answer="A dry Riesling goes with trout.",
    chunks=["Trout: dry Riesling or Grüner Veltliner"],
)
def json_text(config):
    @chain
    def handle(body):
        question = json.loads(body)["question"]
        docs = finding("Trout: dry Riesling or Grüner Veltliner").invoke(question)
        return chat("A dry Riesling goes with trout.").invoke(f"{joined(docs)}\n{question}").text

    handle.invoke(json.dumps({"question": "Which wine goes with the trout?"}), config)


@app(
    "only settings, no question",
    status="no_question",
)
def only_settings(config):
    @chain
    def report(settings):
        docs = finding("Sales rose by four per cent in March.").invoke("sales")
        return chat("Sales rose by four per cent.").invoke(joined(docs)).text

    report.invoke({"limit": 5, "verbose": True}, config)

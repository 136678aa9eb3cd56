"""Applications that write metadata into the prompt, before, behind or beside a document's text."""

from operator import itemgetter
from typing import TypedDict

from harness import app
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_fakes import Found, chat
from langgraph.graph import START, StateGraph

LAMPS = [
    Document(
        "The Aurora is a dimmable desk lamp with a walnut foot.",
        id="sku-1",
        metadata={"name": "Aurora", "price_eur": 129, "stock": "14 pieces in Leipzig"},
    ),
    Document(
        "The Boreas is a floor lamp of brushed brass.",
        id="sku-2",
        metadata={"name": "Boreas", "price_eur": 289, "stock": "sold out until March"},
    ),
]


class Shop(TypedDict, total=False):
    question: str
    docs: list[Document]
    answer: str


@app(
    "prices written behind products",
    question="What does the Boreas lamp cost and can I get it now?",
    answer="The Boreas costs 289 EUR. It is sold out until March.",
    chunks=[each.page_content for each in LAMPS],
    prompt=["Price: 289 EUR", "Availability: sold out until March", "Price: 129 EUR"],
)
def prices(config):
    def retrieve(state: Shop):
        return {"docs": Found(documents=LAMPS).invoke(state["question"])}

    def answer(state: Shop):
        offers = "\n---\n".join(
            f"{doc.page_content}\nPrice: {doc.metadata['price_eur']} EUR\n"
            f"Availability: {doc.metadata['stock']}"
            for doc in state["docs"]
        )
        messages = [
            SystemMessage(f"You sell lamps. Use only these offers:\n{offers}"),
            HumanMessage(state["question"]),
        ]
        model = chat("The Boreas costs 289 EUR. It is sold out until March.")
        return {"answer": model.invoke(messages).content}

    graph = StateGraph(Shop)
    graph.add_node("retrieve", retrieve)
    graph.add_node("answer", answer)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "answer")
    graph.compile().invoke(
        {"question": "What does the Boreas lamp cost and can I get it now?"}, config
    )


@app(
    "dates and authors in front of minutes",
    question="Wann wurde die Kantine geschlossen?",
    answer="Die Kantine wurde laut Protokoll vom 3. Mai 2024 von Frau Yilmaz geschlossen.",
    chunks=["Die Kantine im Erdgeschoss wird wegen der Sanierung geschlossen."],
    prompt=["Protokoll vom 3. Mai 2024", "Verfasserin: Frau Yilmaz"],
)
def minutes(config):
    found = Found(
        documents=[
            Document(
                "Die Kantine im Erdgeschoss wird wegen der Sanierung geschlossen.",
                metadata={"date": "3. Mai 2024", "author": "Frau Yilmaz"},
            )
        ]
    )
    each = PromptTemplate.from_template(
        "[Protokoll vom {date} | Verfasserin: {author}]\n{page_content}"
    )
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Beantworte die Frage aus den Protokollen.\n\n{context}"), ("human", "{input}")]
    )
    model = chat("Die Kantine wurde laut Protokoll vom 3. Mai 2024 von Frau Yilmaz geschlossen.")
    stuff = create_stuff_documents_chain(model, prompt, document_prompt=each)
    chain = RunnablePassthrough.assign(context=itemgetter("input") | found) | stuff
    chain.invoke({"input": "Wann wurde die Kantine geschlossen?"}, config)


@app(
    "a table row of metadata for each hit",
    question="Which flat is cheaper, and how large is it?",
    answer="The flat in Gohlis is cheaper: 690 EUR for 54 square metres. It has a sauna.",
    chunks=["Quiet flat in Gohlis with a balcony.", "Bright flat in Plagwitz near the canal."],
    prompt=["690", "54", "880", "71"],
    invented=["It has a sauna."],
)
async def flats(config):
    found = Found(
        documents=[
            Document("Quiet flat in Gohlis with a balcony.", metadata={"rent": 690, "sqm": 54}),
            Document("Bright flat in Plagwitz near the canal.", metadata={"rent": 880, "sqm": 71}),
        ]
    )

    def table(docs):
        rows = [f"| {d.page_content} | {d.metadata['rent']} | {d.metadata['sqm']} |" for d in docs]
        return "\n".join(["| description | rent (EUR) | size (sqm) |", "|---|---|---|", *rows])

    prompt = ChatPromptTemplate.from_template("Offers:\n{offers}\n\nQuestion: {question}\nAnswer:")
    chain = (
        {"offers": found | RunnableLambda(table), "question": RunnablePassthrough()}
        | prompt
        | chat("The flat in Gohlis is cheaper: 690 EUR for 54 square metres. It has a sauna.")
        | StrOutputParser()
    )
    async for _ in chain.astream("Which flat is cheaper, and how large is it?", config):
        pass


@app(
    "XML tags with attributes",
    question="Who signed the lease?",
    answer="The lease was signed by Marta Nowak on 12 June.",
    chunks=["The tenant accepts the house rules and the heating schedule."],
    prompt=["Marta Nowak", "12 June"],
)
def tags(config):
    found = Found(
        documents=[
            Document(
                "The tenant accepts the house rules and the heating schedule.",
                metadata={"signed_by": "Marta Nowak", "signed_on": "12 June"},
            )
        ]
    )

    def as_xml(docs):
        return "\n".join(
            f'<document index="{n}" signed_by="{d.metadata["signed_by"]}" '
            f'signed_on="{d.metadata["signed_on"]}">\n{d.page_content}\n</document>'
            for n, d in enumerate(docs, 1)
        )

    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer from <documents>{docs}</documents>."), ("human", "{question}")]
    )
    chain = (
        RunnablePassthrough.assign(docs=itemgetter("question") | found | as_xml)
        | prompt
        | chat("The lease was signed by Marta Nowak on 12 June.")
    )
    list(chain.stream({"question": "Who signed the lease?"}, config))

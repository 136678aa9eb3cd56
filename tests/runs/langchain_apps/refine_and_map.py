"""Applications that answer document by document, then combine: refine, map-reduce, sub-answers."""

import operator
from typing import Annotated, TypedDict

from harness import app
from langchain_classic.chains import LLMChain, MapReduceDocumentsChain, ReduceDocumentsChain
from langchain_classic.chains.combine_documents.stuff import StuffDocumentsChain
from langchain_classic.chains.question_answering import load_qa_chain
from langchain_classic.chains.retrieval_qa.base import RetrievalQA
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from langchain_fakes import Completing, chat, documents, finding
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

BELL = "The great bell was cast in 1843 by the brothers Franke."
CRACK = "In 1902 the bell cracked and was recast with more tin."


@app(
    "refine with a chat model",
    question="What happened to the great bell?",
    answer="It was cast in 1843, cracked in 1902 and was recast with more tin.",
    chunks=[BELL, CRACK],
    absent=["It was cast in 1843 by a foundry in Apolda."],
)
def refine(config):
    first = ChatPromptTemplate.from_messages(
        [("system", "Context:\n{context}"), ("human", "{question}")]
    )
    again = ChatPromptTemplate.from_template(
        "Question: {question}\nExisting answer: {answer}\nRefine it with:\n{context}"
    )
    model = chat(
        "It was cast in 1843 by a foundry in Apolda.",
        "It was cast in 1843, cracked in 1902 and was recast with more tin.",
    )

    @chain
    def ask(question):
        docs = finding(BELL, CRACK).invoke(question)
        given = {"context": docs[0].page_content, "question": question}
        answer = (first | model | StrOutputParser()).invoke(given)
        for doc in docs[1:]:
            given = {"context": doc.page_content, "question": question, "answer": answer}
            answer = (again | model | StrOutputParser()).invoke(given)
        return answer

    ask.invoke("What happened to the great bell?", config)


@app(
    "refine as LangChain's classic chain does",
    question="Was geschah mit der Orgel?",
    answer="Die Orgel wurde 1911 erweitert und 1968 elektrifiziert.",
    chunks=["1911 erhielt die Orgel ein drittes Manual.", "1968 wurde ihr Gebläse elektrifiziert."],
    absent=["Die Orgel wurde 1911 erweitert, sie kam aus Weimar."],
)
def classic_refine(config):
    model = chat(
        "Die Orgel wurde 1911 erweitert, sie kam aus Weimar.",
        "Die Orgel wurde 1911 erweitert und 1968 elektrifiziert.",
    )
    retriever = finding(
        "1911 erhielt die Orgel ein drittes Manual.", "1968 wurde ihr Gebläse elektrifiziert."
    )
    RetrievalQA.from_chain_type(model, retriever=retriever, chain_type="refine").invoke(
        {"query": "Was geschah mit der Orgel?"}, config
    )


@app(
    "map-reduce with summaries by a model",
    question="What do the reviews say about the battery?",
    answer="The battery lasts long but charges slowly.",
    chunks=[
        "I charged it on Sunday and it is still half full on Thursday.",
        "Takes four hours until it is full again, far too long.",
    ],
    absent=["Reviewer one is content.", "Reviewer two is annoyed by slow charging."],
)
def map_reduce(config):
    reviews = finding(
        "I charged it on Sunday and it is still half full on Thursday.",
        "Takes four hours until it is full again, far too long.",
    )

    def summary(messages):
        if "Sunday" in messages[-1].content:
            return "Reviewer one is content."
        return "Reviewer two is annoyed by slow charging."

    one = ChatPromptTemplate.from_template("Summarise this review: {review}") | chat(summary)
    combine = ChatPromptTemplate.from_template("Summaries:\n{summaries}\n\nQuestion: {question}")
    application = (
        {
            "summaries": reviews
            | RunnableLambda(lambda docs: [{"review": doc.page_content} for doc in docs])
            | (one | StrOutputParser()).map()
            | "\n".join,
            "question": RunnablePassthrough(),
        }
        | combine
        | chat("The battery lasts long but charges slowly.")
        | StrOutputParser()
    )
    application.invoke("What do the reviews say about the battery?", config)


@app(
    "a map-reduce chain over documents in the input",
    question="What are the main points?",
    answer="Rents rose, wages did not. Strikes are planned.",
    chunks=["Rents rose by nine per cent last year.", "Wages stayed at the level of 2021."],
    absent=["point: dearer housing", "point: wages flat"],
    invented=["Strikes are planned."],
)
def classic_map_reduce(config):
    points = LLMChain(
        llm=Completing(replies=["point: dearer housing", "point: wages flat"]),
        prompt=PromptTemplate.from_template("Main point of: {docs}"),
    )
    combine = LLMChain(
        llm=chat("Rents rose, wages did not. Strikes are planned."),
        prompt=PromptTemplate.from_template("Points: {docs}\nQuestion: {question}"),
    )
    application = MapReduceDocumentsChain(
        llm_chain=points,
        reduce_documents_chain=ReduceDocumentsChain(
            combine_documents_chain=StuffDocumentsChain(
                llm_chain=combine, document_variable_name="docs"
            )
        ),
        document_variable_name="docs",
    )
    docs = documents("Rents rose by nine per cent last year.", "Wages stayed at the level of 2021.")
    application.invoke({"input_documents": docs, "question": "What are the main points?"}, config)


class Parts(TypedDict, total=False):
    question: str
    docs: list[Document]
    doc: Document
    parts: Annotated[list[str], operator.add]
    answer: str


@app(
    "a Send for each document, in Chinese",
    question="这座桥有什么历史？",
    answer="这座桥建于1890年，1937年被炸毁，1950年重建。",
    chunks=["桥由法国工程师于1890年设计。", "1937年秋天，桥被炸毁。", "桥梁于1950年重新通车。"],
    absent=["第一部分：早期建造。", "第二部分：战争破坏。", "第三部分：恢复。"],
)
async def sent(config):
    def retrieve(state: Parts):
        texts = ["桥由法国工程师于1890年设计。", "1937年秋天，桥被炸毁。", "桥梁于1950年重新通车。"]
        return {"docs": finding(*texts).invoke(state["question"])}

    def reply(messages):
        text = messages[-1].content
        if "1890" in text:
            return "第一部分：早期建造。"
        return "第二部分：战争破坏。" if "1937" in text else "第三部分：恢复。"

    async def read(state: Parts):
        made = await chat(reply).ainvoke(f"概括：{state['doc'].page_content}")
        return {"parts": [made.text]}

    async def combine(state: Parts):
        asked = "\n".join(state["parts"]) + f"\n问题：{state['question']}"
        made = await chat("这座桥建于1890年，1937年被炸毁，1950年重建。").ainvoke(asked)
        return {"answer": made.text}

    graph = StateGraph(Parts)
    for node in (retrieve, read, combine):
        graph.add_node(node)
    graph.add_edge(START, "retrieve")
    graph.add_conditional_edges(
        "retrieve", lambda state: [Send("read", {"doc": doc}) for doc in state["docs"]], ["read"]
    )
    graph.add_edge("read", "combine")
    graph.add_edge("combine", END)
    await graph.compile().ainvoke({"question": "这座桥有什么历史？"}, config)


@app(
    "sub-questions with answers of one word",
    question="Is the Boreas heavier than the Aurora, and what is it made of?",
    answer="The Boreas is heavier, and it is made of brass.",
    chunks=[
        "The Boreas weighs nine kilograms, the Aurora two.",
        "The Boreas is cast in an alloy of copper and zinc.",
    ],
    absent=["Brass."],
)
def one_word(config):
    asked = {
        "Which is heavier?": "The Boreas weighs nine kilograms, the Aurora two.",
        "What is it made of?": "The Boreas is cast in an alloy of copper and zinc.",
    }

    @chain
    def decompose(question):
        planner = chat("Which is heavier?\nWhat is it made of?")
        parts = planner.invoke(f"Split into sub-questions: {question}").content.splitlines()
        notes = []
        for part in parts:
            (doc,) = finding(asked[part]).invoke(part)
            worker = chat("Brass." if "made" in part else "Boreas.")
            reply = worker.invoke(f"Context: {doc.page_content}\n{part}").content
            notes.append(f"Q: {part}\nA: {reply}")
        system = SystemMessage("Answer from these notes:\n" + "\n".join(notes))
        model = chat("The Boreas is heavier, and it is made of brass.")
        return model.invoke([system, HumanMessage(question)]).content

    decompose.invoke("Is the Boreas heavier than the Aurora, and what is it made of?", config)


@app(
    "answers per document that are joined without a model",
    question="What do the witnesses say about the car?",
    answer="Witness 1: The car was red.\nWitness 2: It came from the left.",
    chunks=["I saw a red car, said the baker.", "The car came from the left, said the nurse."],
)
def accumulated(config):
    witnesses = finding(
        "I saw a red car, said the baker.", "The car came from the left, said the nurse."
    )

    def reply(messages):
        return "The car was red." if "baker" in messages[-1].content else "It came from the left."

    one = ChatPromptTemplate.from_template("{text}\n\n{question}") | chat(reply) | StrOutputParser()

    @chain
    def ask(question):
        docs = witnesses.invoke(question)
        replies = one.batch([{"text": d.page_content, "question": question} for d in docs])
        return "\n".join(f"Witness {n}: {text}" for n, text in enumerate(replies, 1))

    ask.invoke("What do the witnesses say about the car?", config)


@app(
    "each document ranked by the score of its answer",
    question="What is the boiling point of the coolant?",
    answer="It boils at 129 degrees.",
    chunks=["At normal pressure the coolant boils at 129 degrees."],
    absent=["The coolant is green."],
)
def map_rerank(config):
    texts = ["The coolant is green.", "At normal pressure the coolant boils at 129 degrees."]

    def reply(messages):
        if "129" in messages[-1].content:
            return "It boils at 129 degrees.\nScore: 100"
        return "I do not know.\nScore: 0"

    @chain
    def ask(question):
        replies = [
            chat(reply).invoke(f"{doc.page_content}\n\n{question}\nEnd with 'Score: 0-100'.").text
            for doc in finding(*texts).invoke(question)
        ]
        best = max(replies, key=lambda text: int(text.rpartition(" ")[2]))
        return best.partition("\n")[0]

    ask.invoke("What is the boiling point of the coolant?", config)


@app(
    "answers interleaved with retrieval",
    question="In which country was the director of Jaws born?",
    answer="Steven Spielberg, the director of Jaws, was born in the United States.",
    chunks=[
        "Jaws is a film of 1975 by Steven Spielberg.",
        "Spielberg was born in Cincinnati, Ohio.",
    ],
    absent=["The director must be looked up by birthplace next."],
)
def interleaved(config):
    @chain
    def ask(given):
        found = [*finding("Jaws is a film of 1975 by Steven Spielberg.").invoke(given["question"])]
        thought = chat("The director must be looked up by birthplace next.").invoke(
            f"{found[0].page_content}\n{given['question']}"
        )
        found += finding("Spielberg was born in Cincinnati, Ohio.").invoke(thought.content)
        context = "\n\n".join(doc.page_content for doc in found)
        model = chat("Steven Spielberg, the director of Jaws, was born in the United States.")
        prompt = f"{context}\n\nSo far: {thought.content}\n\nQuestion: {given['question']}"
        return {"answer": model.invoke(prompt).content}

    ask.invoke({"question": "In which country was the director of Jaws born?"}, config)


@app(
    "load_qa_chain over given documents",
    question="How many stops has line 7?",
    answer="Line 7 has 23 stops.",
    chunks=["Line 7 runs from the harbour to the zoo with 23 stops."],
)
def loaded(config):
    docs = documents("Line 7 runs from the harbour to the zoo with 23 stops.")
    load_qa_chain(chat("Line 7 has 23 stops."), chain_type="stuff").invoke(
        {"input_documents": docs, "question": "How many stops has line 7?"}, config
    )


@app(
    "hypothetical answers as queries",
    question="Why do leaves turn yellow?",
    answer="Because chlorophyll breaks down in autumn.",
    chunks=["In autumn chlorophyll breaks down and yellow carotenoids show."],
    absent=["Leaves turn yellow because trees rust in the rain."],
)
def hypothetical(config):
    draft = (
        ChatPromptTemplate.from_template("Write a passage that answers: {question}")
        | chat("Leaves turn yellow because trees rust in the rain.")
        | StrOutputParser()
    )
    passages = finding("In autumn chlorophyll breaks down and yellow carotenoids show.")
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    application = (
        RunnablePassthrough.assign(context=draft | passages | (lambda docs: docs[0].page_content))
        | prompt
        | chat("Because chlorophyll breaks down in autumn.")
        | StrOutputParser()
    )
    application.invoke({"question": "Why do leaves turn yellow?"}, config)

"""Documents and questions under roles and labels of the application's own."""

from harness import app
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnablePassthrough
from langchain_fakes import (
    chat,
    finding,
    joined,
)


@app(
    "documents in a message that the application writes as the assistant's",
    question="How is felt made?",
    answer="Felt is made of wet wool that is rubbed.",
    chunks=["Wet wool that is rubbed becomes felt.", "Felt does not fray."],
)
def assistant_documents(config):
    prompt = ChatPromptTemplate.from_messages(
        [
            ("human", "{question}"),
            ("ai", "I searched the encyclopaedia and found:\n{context}"),
            ("human", "Now answer my question from that."),
        ]
    )
    made = (
        {
            "context": finding("Wet wool that is rubbed becomes felt.", "Felt does not fray.")
            | joined,
            "question": RunnablePassthrough(),
        }
        | prompt
        | chat("Felt is made of wet wool that is rubbed.")
        | StrOutputParser()
    )
    made.invoke("How is felt made?", config)


@app(
    "documents in a message of the developer's role",
    question="Is cork recyclable?",
    answer="Yes, shops collect cork.",
    chunks=["Used corks are collected by many shops."],
    attached=True,
)
def developer(config):
    docs = finding("Used corks are collected by many shops.").invoke("cork recycling")
    chat("Yes, shops collect cork.").invoke(
        [
            ChatMessage(role="developer", content=f"Knowledge:\n{joined(docs)}"),
            HumanMessage("Is cork recyclable?"),
        ]
    )


@app(
    "each document as a message of its own role",
    question="What may I plant in June?",
    answer="In June you may plant leeks and kale. Beans rot in June.",
    chunks=["Leeks are planted in June.", "Kale is planted from June to July."],
    invented=["Beans rot in June."],
    attached=True,
)
def document_roles(config):
    question = "What may I plant in June?"
    docs = finding("Leeks are planted in June.", "Kale is planted from June to July.").invoke(
        question
    )
    shown = [
        ChatMessage(role=f"document {n}", content=doc.page_content) for n, doc in enumerate(docs)
    ]
    chat("In June you may plant leeks and kale. Beans rot in June.").invoke(
        [*shown, HumanMessage(question)]
    )


@app(
    "documents as system messages after the question",
    question="Who tunes the organ?",
    answer="Mr Falk tunes the organ every May.",
    chunks=["The organ is tuned each May by Mr Falk."],
)
def after_question(config):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You help."), ("human", "{question}"), MessagesPlaceholder("sources")]
    )
    made = (
        {
            "question": RunnablePassthrough(),
            "sources": finding("The organ is tuned each May by Mr Falk.")
            | (lambda docs: [SystemMessage(d.page_content) for d in docs]),
        }
        | prompt
        | chat("Mr Falk tunes the organ every May.")
        | StrOutputParser()
    )
    made.invoke("Who tunes the organ?", config)


@app(
    "a greeting of the application before a search",
    question="Do you repair zips?",
    answer="Yes, zips are repaired for 12 EUR. We have done so for fifty years.",
    chunks=["Repair of zips: 12 EUR."],
    absent=["Hello, this is the tailor's shop."],
    invented=["We have done so for fifty years."],
    attached=True,
)
def greeting(config):
    docs = finding("Repair of zips: 12 EUR.").invoke("Do you repair zips?")
    chat("Yes, zips are repaired for 12 EUR. We have done so for fifty years.").invoke(
        [
            SystemMessage(f"Prices:\n{joined(docs)}"),
            AIMessage("Hello, this is the tailor's shop."),
            HumanMessage("Do you repair zips?"),
        ]
    )


@app(
    "a plain function that searches with keywords and writes the user's words under a label",
    question="How do I get my deposit back?",
    answer="Return the key, and the deposit is paid within a week.",
    chunks=["Deposits are paid back within a week of the key's return."],
    attached=True,
)
def keywords(config):
    question = "How do I get my deposit back?"
    docs = finding("Deposits are paid back within a week of the key's return.").invoke(
        "deposit back"
    )
    chat("Return the key, and the deposit is paid within a week.").invoke(
        f"You work for a landlord.\n\nKnowledge:\n{joined(docs)}\n\nTenant: {question}\nYou:"
    )


@app(
    "a plain function that searches with one word of the question in the system prompt's text",
    question="Which lamps are dimmable",
    answer="The Aurora and the Nova are dimmable.",
    chunks=["Dimmable lamps: Aurora, Nova."],
    attached=True,
)
def one_word(config):
    docs = finding("Dimmable lamps: Aurora, Nova.").invoke("lamps")
    chat("The Aurora and the Nova are dimmable.").invoke(
        [
            SystemMessage(f"Only talk about lamps.\n{joined(docs)}"),
            HumanMessage("Which lamps are dimmable"),
        ]
    )


@app(
    "a plain function whose model writes the query",
    question="Is there something against moss on slabs?",
    answer="Vinegar removes moss from slabs.",
    chunks=["Moss on slabs goes with vinegar."],
    absent=["moss removal paving slabs"],
    cases=1,
    attached=True,
)
def model_query(config):
    question = "Is there something against moss on slabs?"
    query = chat("moss removal paving slabs").invoke(f"Write a search query for: {question}").text
    docs = finding("Moss on slabs goes with vinegar.").invoke(query)
    chat("Vinegar removes moss from slabs.").invoke(
        [SystemMessage(joined(docs)), HumanMessage(question)]
    )


@app(
    "retrieved examples of questions and answers as earlier turns",
    question="Can I pay by cheque?",
    answer="Cheques are not accepted.",
    chunks=["Cash and cards are accepted. Cheques are not."],
)
def dynamic_examples(config):
    from langchain_core.prompts import FewShotChatMessagePromptTemplate

    examples = FewShotChatMessagePromptTemplate(
        examples=[{"input": "Can I pay by card?", "output": "Cards are accepted."}],
        example_prompt=ChatPromptTemplate.from_messages([("human", "{input}"), ("ai", "{output}")]),
    )
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer from: {context}"), examples, ("human", "{input}")]
    )
    made = (
        RunnablePassthrough.assign(
            context=lambda x: joined(
                finding("Cash and cards are accepted. Cheques are not.").invoke(x["input"])
            )
        )
        | prompt
        | chat("Cheques are not accepted.")
        | StrOutputParser()
    )
    made.invoke({"input": "Can I pay by cheque?"}, config)

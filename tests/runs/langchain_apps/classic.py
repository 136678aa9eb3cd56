"""Chains and agents of LangChain before version 1, which many applications still use."""

from harness import app
from langchain_classic.agents import AgentExecutor, create_react_agent, create_tool_calling_agent
from langchain_classic.chains import (
    ConversationChain,
    LLMChain,
    RetrievalQA,
    RetrievalQAWithSourcesChain,
    SequentialChain,
    StuffDocumentsChain,
    TransformChain,
    create_retrieval_chain,
)
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.memory import ConversationBufferMemory
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.tools import Tool, create_retriever_tool
from langchain_fakes import Completing, Found, calling, chat, documents, finding

MOSS = "Moss is removed with a scarifier in April."


@app(
    "RetrievalQA that stuffs",
    question="How do I remove moss?",
    answer="Use a scarifier in April. Then sow clover.",
    chunks=[MOSS],
    invented=["Then sow clover."],
)
def stuffed(config):
    RetrievalQA.from_chain_type(
        chat("Use a scarifier in April. Then sow clover."),
        retriever=finding(MOSS),
        return_source_documents=True,
    ).invoke({"query": "How do I remove moss?"}, config)


@app(
    "RetrievalQA with a completion model and map-reduce",
    question="Welche Blumen vertragen Frost?",
    answer="Stiefmütterchen und Hornveilchen vertragen Frost.",
    chunks=["Stiefmütterchen blühen bis minus zehn Grad.", "Hornveilchen sind winterhart."],
    absent=["Das erste Dokument nennt eine robuste Blume."],
)
def classic_map_reduce(config):
    model = Completing(
        replies=[
            "Das erste Dokument nennt eine robuste Blume.",
            "Auch die zweite überlebt den Winter.",
            "Stiefmütterchen und Hornveilchen vertragen Frost.",
        ]
    )
    RetrievalQA.from_chain_type(
        model,
        retriever=finding(
            "Stiefmütterchen blühen bis minus zehn Grad.", "Hornveilchen sind winterhart."
        ),
        chain_type="map_reduce",
    ).invoke("Welche Blumen vertragen Frost?", config)


@app(
    "an answer that is split from its sources",
    question="When do apples ripen?",
    answer="Early apples ripen in July.",
    chunks=["The earliest apples ripen in July."],
)
def with_sources(config):
    found = Found(
        documents=[Document("The earliest apples ripen in July.", metadata={"source": "12-pl"})]
    )
    RetrievalQAWithSourcesChain.from_chain_type(
        chat("Early apples ripen in July.\nSOURCES: 12-pl"), retriever=found
    ).invoke({"question": "When do apples ripen?"}, config)


@app(
    "a chain of chains",
    question="How often do I water the cactus?",
    answer="Water the cactus once a month.",
    chunks=["Cacti need water every four weeks."],
    absent=["cactus watering interval"],
)
def sequential(config):
    rewrite = LLMChain(
        llm=chat("cactus watering interval"),
        prompt=PromptTemplate.from_template("Keywords for: {question}"),
        output_key="keywords",
    )
    search = TransformChain(
        input_variables=["keywords"],
        output_variables=["input_documents"],
        transform=lambda given: {
            "input_documents": finding("Cacti need water every four weeks.").invoke(
                given["keywords"]
            )
        },
    )
    answer = StuffDocumentsChain(
        llm_chain=LLMChain(
            llm=chat("Water the cactus once a month."),
            prompt=PromptTemplate.from_template("{context}\n\n{question}"),
        ),
        document_variable_name="context",
        output_key="answer",
    )
    SequentialChain(
        chains=[rewrite, search, answer],
        input_variables=["question"],
        output_variables=["answer"],
    ).invoke({"question": "How often do I water the cactus?"}, config)


@app(
    "a ReAct agent that writes its calls as text",
    question="How high do sunflowers grow?",
    answer="Sunflowers grow up to three metres high.",
    chunks=["Sunflowers reach up to three metres."],
    absent=["I should look this up in the plant book."],
)
def react(config):
    prompt = PromptTemplate.from_template(
        "Tools: {tools}\nNames: {tool_names}\nUse Thought, Action, Action Input, Observation and "
        "Final Answer.\n\nQuestion: {input}\nThought:{agent_scratchpad}"
    )
    model = Completing(
        replies=[
            " I should look this up in the plant book.\nAction: plants\nAction Input: sunflower",
            " I know it now.\nFinal Answer: Sunflowers grow up to three metres high.",
        ]
    )
    plants = Tool(
        name="plants",
        description="The plant book.",
        func=lambda query: "Sunflowers reach up to three metres.",
    )
    AgentExecutor(agent=create_react_agent(model, [plants], prompt), tools=[plants]).invoke(
        {"input": "How high do sunflowers grow?"}, config
    )


@app(
    "an executor of tool calls with intermediate steps",
    question="Do slugs like lavender?",
    answer="No, slugs avoid lavender.",
    chunks=["Lavender is avoided by slugs.", "Slugs love lettuce."],
)
async def executor(config):
    search = create_retriever_tool(
        finding("Lavender is avoided by slugs.", "Slugs love lettuce."), "garden", "Searches."
    )
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Help."), ("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
    )
    model = chat(calling("garden", query="slugs lavender"), "No, slugs avoid lavender.")
    await AgentExecutor(
        agent=create_tool_calling_agent(model, [search], prompt),
        tools=[search],
        return_intermediate_steps=True,
    ).ainvoke({"input": "Do slugs like lavender?"}, config)


@app(
    "a conversation with a buffer memory",
    question="And how deep?",
    answer="Plant the bulbs ten centimetres deep.",
    prompt=["I want to plant tulips in October."],
    absent=["October is a good month for tulips."],
    cases=1,
)
def buffered(config):
    memory = ConversationBufferMemory()
    memory.save_context(
        {"input": "I want to plant tulips in October."},
        {"output": "October is a good month for tulips."},
    )
    ConversationChain(llm=chat("Plant the bulbs ten centimetres deep."), memory=memory).invoke(
        {"input": "And how deep?"}, config
    )


@app(
    "a retrieval chain over a whole dictionary",
    question="Which soil does heather like?",
    answer="Heather likes acid soil.",
    chunks=["Heather grows on acid soil.", "Lime harms heather."],
)
def retrieval_chain(config):
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{input}")])
    create_retrieval_chain(
        finding("Heather grows on acid soil.", "Lime harms heather."),
        create_stuff_documents_chain(chat("Heather likes acid soil."), prompt),
    ).invoke({"input": "Which soil does heather like?"}, config)


@app(
    "a chain for each document of an input",
    question="Which of my plants need shade?",
    answer="Hostas and ferns need shade.",
    chunks=["Hosta: half shade to shade", "Fern: shade, moist"],
)
def given_documents(config):
    StuffDocumentsChain(
        llm_chain=LLMChain(
            llm=chat("Hostas and ferns need shade."),
            prompt=PromptTemplate.from_template("Plants:\n{text}\n\n{question}"),
        ),
        document_variable_name="text",
    ).invoke(
        {
            "input_documents": documents("Hosta: half shade to shade", "Fern: shade, moist"),
            "question": "Which of my plants need shade?",
        },
        config,
    )

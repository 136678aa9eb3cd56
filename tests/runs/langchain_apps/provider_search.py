"""Models whose provider searches: results and citations come in the reply, not in the prompt."""

from harness import app
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_fakes import chat, finding
from langgraph.graph import START, MessagesState, StateGraph


def ask(text):
    return {"messages": [HumanMessage(text)]}


@app(
    "Anthropic's web search with citations",
    question="Who won the regatta on Sunday?",
    answer="The boat of Lausanne won. The wind was weak.",
    prompt=["Lausanne crossed the line first, eleven seconds before Como."],
    invented=["The wind was weak."],
)
def anthropic_web_search(config):
    cited = "Lausanne crossed the line first, eleven seconds before Como."
    reply = AIMessage(
        [
            {
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "web_search",
                "input": {"query": "regatta sunday winner"},
            },
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [
                    {
                        "type": "web_search_result",
                        "title": "Regatta: results",
                        "url": "https://boats.example/1",
                        "encrypted_content": "EqgfCioIARgBIiQ3YTAw",
                        "page_age": "1 day",
                    }
                ],
            },
            {
                "type": "text",
                "text": "The boat of Lausanne won.",
                "citations": [
                    {
                        "type": "web_search_result_location",
                        "url": "https://boats.example/1",
                        "title": "Regatta: results",
                        "cited_text": cited,
                        "encrypted_index": "Eo8BCioIAhgB",
                    }
                ],
            },
            {"type": "text", "text": " The wind was weak."},
        ]
    )
    create_agent(chat(reply), []).invoke(ask("Who won the regatta on Sunday?"), config)


@app(
    "standard blocks of a server's search",
    question="Wann beginnt die Sommerzeit?",
    answer="Die Sommerzeit beginnt am letzten Sonntag im März.",
    prompt=["Die Uhren werden am letzten Sonntag im März vorgestellt."],
)
async def standard_blocks(config):
    reply = AIMessage(
        content=[
            {
                "type": "server_tool_call",
                "id": "s1",
                "name": "web_search",
                "args": {"query": "sommerzeit beginn"},
            },
            {
                "type": "server_tool_result",
                "tool_call_id": "s1",
                "status": "success",
                "output": [
                    {
                        "title": "Zeitumstellung",
                        "url": "https://zeit.example",
                        "text": "Die Uhren werden am letzten Sonntag im März vorgestellt.",
                    }
                ],
            },
            {"type": "text", "text": "Die Sommerzeit beginnt am letzten Sonntag im März."},
        ]
    )
    await create_agent(chat(reply), []).ainvoke(ask("Wann beginnt die Sommerzeit?"), config)


@app(
    "documents given to Anthropic with citations on",
    question="How many calories has the soup?",
    answer="The soup has 210 calories.",
    prompt=["Lentil soup, 350 g, 210 kcal, vegan"],
)
def anthropic_documents(config):
    reply = AIMessage(
        [
            {
                "type": "text",
                "text": "The soup has 210 calories.",
                "citations": [
                    {
                        "type": "char_location",
                        "cited_text": "210 kcal",
                        "document_index": 0,
                        "document_title": "Menu",
                        "start_char_index": 20,
                        "end_char_index": 28,
                    }
                ],
            }
        ]
    )
    message = HumanMessage(
        [
            {
                "type": "document",
                "source": {
                    "type": "text",
                    "media_type": "text/plain",
                    "data": "Lentil soup, 350 g, 210 kcal, vegan",
                },
                "title": "Menu",
                "citations": {"enabled": True},
            },
            {"type": "text", "text": "How many calories has the soup?"},
        ]
    )

    def answer(state: MessagesState):
        return {"messages": [chat(reply).invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node(answer)
    graph.add_edge(START, "answer")
    graph.compile().invoke({"messages": [message]}, config)


@app(
    "search results as blocks of a user message",
    question="Which battery does the doorbell take?",
    answer="It takes two AA batteries. They last three years.",
    prompt=["The doorbell works with two batteries of size AA."],
    invented=["They last three years."],
)
def search_result_blocks(config):
    def answer(question):
        docs = finding("The doorbell works with two batteries of size AA.").invoke(question)
        blocks = [
            {
                "type": "search_result",
                "source": "manual.pdf",
                "title": "Manual",
                "content": [{"type": "text", "text": doc.page_content}],
                "citations": {"enabled": True},
            }
            for doc in docs
        ]
        message = HumanMessage([*blocks, {"type": "text", "text": question}])
        return chat("It takes two AA batteries. They last three years.").invoke([message]).text

    RunnableLambda(answer).invoke("Which battery does the doorbell take?", config)


@app(
    "OpenAI's file search with its results",
    question="What does the travel policy say about trains?",
    answer="First class is paid for journeys above four hours.",
    prompt=["First class is reimbursed on trains for journeys of more than four hours."],
)
def openai_file_search(config):
    reply = AIMessage(
        content=[
            {
                "type": "text",
                "text": "First class is paid for journeys above four hours.",
                "annotations": [
                    {"type": "file_citation", "file_id": "f-1", "filename": "policy.pdf"}
                ],
            }
        ],
        additional_kwargs={
            "tool_outputs": [
                {
                    "type": "file_search_call",
                    "id": "fs_1",
                    "queries": ["trains first class"],
                    "status": "completed",
                    "results": [
                        {
                            "file_id": "f-1",
                            "filename": "policy.pdf",
                            "score": 0.88,
                            "text": "First class is reimbursed on trains for journeys of more "
                            "than four hours.",
                        }
                    ],
                }
            ]
        },
    )
    create_agent(chat(reply), []).invoke(
        ask("What does the travel policy say about trains?"), config
    )


@app(
    "grounding of Gemini in the response's metadata",
    question="How tall is the new tower?",
    answer="The new tower is 199 metres tall.",
    prompt=["At 199 metres the tower is now the tallest building of the city."],
)
def grounding(config):
    reply = AIMessage(
        "The new tower is 199 metres tall.",
        response_metadata={
            "grounding_metadata": {
                "grounding_chunks": [
                    {
                        "retrieved_context": {
                            "title": "Tower",
                            "uri": "https://tower.example",
                            "text": "At 199 metres the tower is now the tallest building of the "
                            "city.",
                        }
                    }
                ],
                "grounding_supports": [
                    {
                        "segment": {"text": "The new tower is 199 metres tall."},
                        "grounding_chunk_indices": [0],
                    }
                ],
            }
        },
    )
    create_agent(chat(reply), []).invoke(ask("How tall is the new tower?"), config)


@app(
    "Cohere's documents beside the prompt",
    question="Which floor is radiology on?",
    answer="Radiology is on floor 2.",
    chunks=["Radiology: floor 2, room 214"],
)
def documents_beside_the_prompt(config):
    def answer(question):
        docs = finding("Radiology: floor 2, room 214").invoke(question)
        model = chat("Radiology is on floor 2.")
        given = [{"data": {"text": doc.page_content}} for doc in docs]
        return model.invoke([HumanMessage(question)], documents=given).text

    RunnableLambda(answer).invoke("Which floor is radiology on?", config)


@app(
    "citations in the text of an answer",
    question="May I film in the museum?",
    answer="Filming is allowed without a tripod [1].",
    chunks=["Visitors may film without a tripod."],
)
def cited(config):
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    numbered = finding("Visitors may film without a tripod.") | (
        lambda docs: "\n".join(f"[{n}] {doc.page_content}" for n, doc in enumerate(docs, 1))
    )
    chain = (
        {"context": numbered, "question": RunnablePassthrough()}
        | prompt
        | chat("Filming is allowed without a tripod [1].")
        | StrOutputParser()
    )
    chain.invoke("May I film in the museum?", config)


@app(
    "several cited passages of a provider",
    question="Is the park open in winter?",
    answer="Yes, the park opens at eight in winter. Sledges can be hired.",
    prompt=["In winter the gates open at 8 a.m.", "The café is closed until March."],
    invented=["Sledges can be hired."],
)
async def several_citations(config):
    def cite(text):
        return {
            "type": "web_search_result_location",
            "url": "https://park.example",
            "title": "Park",
            "cited_text": text,
            "encrypted_index": "Eo8B",
        }

    reply = AIMessage(
        [
            {
                "type": "text",
                "text": "Yes, the park opens at eight in winter.",
                "citations": [
                    cite("In winter the gates open at 8 a.m."),
                    cite("The café is closed until March."),
                ],
            },
            {"type": "text", "text": " Sledges can be hired."},
        ]
    )
    graph = StateGraph(MessagesState)

    async def node(state: MessagesState):
        return {"messages": [await chat(reply).ainvoke(state["messages"])]}

    graph.add_node("node", node)
    graph.add_edge(START, "node")
    await graph.compile().ainvoke(ask("Is the park open in winter?"), config)

"""Applications that search the web: hits are dictionaries, JSON or lines, under many keys."""

import json
from typing import Any, TypedDict

from harness import app
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_fakes import calling, calling_all, chat
from langgraph.graph import END, START, StateGraph

TIDES = [
    {
        "title": "Tide tables for Husum",
        "url": "https://tides.example/husum",
        "content": "High water in Husum on Sunday is at 14:20.",
        "score": 0.91,
    },
    {
        "title": "Visiting the mudflats",
        "url": "https://mud.example/guide",
        "content": "Guided walks start three hours before low water.",
        "score": 0.77,
    },
]
COMETS = {
    "query": "comet visible november",
    "answer": None,
    "results": [
        {
            "title": "Sky this month",
            "url": "https://sky.example/11",
            "content": "Comet Lemmon can be seen with binoculars until the 20th.",
            "raw_content": None,
        },
        {
            "title": "Moon phases",
            "url": "https://moon.example",
            "content": "The moon is new on the 20th.",
            "raw_content": None,
        },
    ],
    "response_time": 0.83,
}


class Search(TypedDict, total=False):
    question: str
    query: str
    web_results: list[dict]
    hits: list[Any]
    answer: str


def graph_of(state, **nodes):
    builder = StateGraph(state)
    builder.add_sequence(list(nodes.items()))
    builder.add_edge(START, next(iter(nodes)))
    return builder.compile()


@app(
    "an agent whose search tool returns a dictionary of hits",
    question="Can I still see the comet?",
    answer="Yes, Comet Lemmon can be seen with binoculars until the 20th. It will return in 2031.",
    chunks=[hit["content"] for hit in COMETS["results"]],
    absent=["comet visible november tonight"],
    invented=["It will return in 2031."],
)
def dictionary_of_hits(config):
    @tool
    def web_search(query: str) -> dict:
        """Search the web."""
        return COMETS

    model = chat(
        calling("web_search", query="comet visible november tonight"),
        "Yes, Comet Lemmon can be seen with binoculars until the 20th. It will return in 2031.",
    )
    agent = create_agent(model, [web_search], system_prompt="Search before you answer.")
    agent.invoke({"messages": [HumanMessage("Can I still see the comet?")]}, config)


@app(
    "hits written as a list with title and address",
    question="When is high water in Husum on Sunday?",
    answer="High water is at 14:20.",
    prompt=[*(hit["content"] for hit in TIDES), "Tide tables for Husum"],
    absent=["Husum tide Sunday"],
)
def lines_of_hits(config):
    def write_query(state: Search):
        return {"query": chat("Husum tide Sunday").invoke(state["question"]).content}

    def search(state: Search):
        return {"web_results": TIDES}

    def answer(state: Search):
        found = "\n\n".join(
            f"### {hit['title']} ({hit['url']})\n{hit['content']}" for hit in state["web_results"]
        )
        messages = [
            SystemMessage(f"Answer from these web results:\n\n{found}"),
            HumanMessage(state["question"]),
        ]
        return {"answer": chat("High water is at 14:20.").invoke(messages).content}

    graph = graph_of(Search, write_query=write_query, search=search, answer=answer)
    graph.invoke({"question": "When is high water in Husum on Sunday?"}, config)


@app(
    "hits under body and href, in Spanish",
    question="¿Cuándo abre el museo del Prado los domingos?",
    answer="Los domingos abre de diez a siete.",
    prompt=[
        "El museo abre los domingos de diez de la mañana a siete de la tarde.",
        "La entrada es gratuita las dos últimas horas.",
        "Horarios y tarifas",
    ],
)
async def body_and_href(config):
    async def search(question):
        return [
            {
                "title": "Horarios y tarifas",
                "href": "https://prado.example/visita",
                "body": "El museo abre los domingos de diez de la mañana a siete de la tarde.",
            },
            {
                "title": "Entrada gratuita",
                "href": "https://prado.example/gratis",
                "body": "La entrada es gratuita las dos últimas horas.",
            },
        ]

    prompt = ChatPromptTemplate.from_template(
        "Resultados de la búsqueda:\n{results}\n\nPregunta: {question}\nRespuesta:"
    )
    chain = (
        {"results": RunnableLambda(search), "question": RunnablePassthrough()}
        | prompt
        | chat("Los domingos abre de diez a siete.")
        | StrOutputParser()
    )
    await chain.ainvoke("¿Cuándo abre el museo del Prado los domingos?", config)


@app(
    "snippets of a search engine as one text with brackets",
    question="Who won the handball match last night?",
    answer="Kiel won 31 to 28 against Flensburg. Landin was injured.",
    chunks=["Kiel beats Flensburg 31:28 in front of 10,285 spectators."],
    prompt=["Next match on Thursday in Magdeburg"],
    invented=["Landin was injured."],
)
def bracketed_snippets(config):
    @tool
    def duckduckgo_results_json(query: str) -> str:
        """Search with DuckDuckGo."""
        return (
            "snippet: Kiel beats Flensburg 31:28 in front of 10,285 spectators., title: Derby, "
            "link: https://ball.example/1, snippet: Next match on Thursday in Magdeburg, title: "
            "Schedule, link: https://ball.example/2"
        )

    model = chat(
        calling("duckduckgo_results_json", query="handball result yesterday"),
        "Kiel won 31 to 28 against Flensburg. Landin was injured.",
    )
    agent = create_agent(model, [duckduckgo_results_json])
    question = {"messages": [("user", "Who won the handball match last night?")]}
    for _ in agent.stream(question, config, stream_mode="updates"):
        pass


@app(
    "web hits joined to documents as corrective RAG does",
    question="Is glyphosate allowed in Austria?",
    answer="A partial ban has been in force since 2021: private gardens may not use it.",
    chunks=[
        "Austria has had a partial ban on glyphosate since 2021.\nPrivate gardens may not use it."
    ],
    absent=["Wheat is sown in October.", "glyphosate austria legal status"],
)
def corrective(config):
    class Graph(TypedDict, total=False):
        question: str
        documents: list[Document]
        generation: str

    def retrieve(state: Graph):
        return {"documents": [Document("Wheat is sown in October.")]}

    def grade(state: Graph):
        kept = [
            doc
            for doc in state["documents"]
            if chat("no").invoke(f"Relevant?\n{doc.page_content}\n{state['question']}").text
            == "yes"
        ]
        return {"documents": kept}

    def web_search(state: Graph):
        chat("glyphosate austria legal status").invoke(f"Rewrite: {state['question']}")
        hits = [
            {"url": "a", "content": "Austria has had a partial ban on glyphosate since 2021."},
            {"url": "b", "content": "Private gardens may not use it."},
        ]
        joined = "\n".join(hit["content"] for hit in hits)
        return {"documents": [*state["documents"], Document(page_content=joined)]}

    def generate(state: Graph):
        prompt = ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}")
        model = chat("A partial ban has been in force since 2021: private gardens may not use it.")
        chain = prompt | model | StrOutputParser()
        context = "\n\n".join(doc.page_content for doc in state["documents"])
        return {
            "generation": chain.invoke({"context": context, "question": state["question"]}),
        }

    builder = StateGraph(Graph)
    for node in (retrieve, grade, web_search, generate):
        builder.add_node(node)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "grade")
    builder.add_conditional_edges(
        "grade", lambda state: "generate" if state["documents"] else "web_search"
    )
    builder.add_edge("web_search", "generate")
    builder.add_edge("generate", END)
    builder.compile().invoke({"question": "Is glyphosate allowed in Austria?"}, config)


@app(
    "hits dumped as JSON with escapes",
    question="Wie heißt die älteste Straßenbahnlinie Zürichs?",
    answer="Die älteste Linie führt über die Rösslistrasse.",
    chunks=["Die älteste Linie führt seit 1882 über die Rösslistrasse.", "Sie ist grün."],
)
def json_with_escapes(config):
    @tool
    def suche(anfrage: str) -> str:
        """Sucht im Netz."""
        hits = [
            {"text": "Die älteste Linie führt seit 1882 über die Rösslistrasse.", "rank": 1},
            {"text": "Sie ist grün.", "rank": 2},
        ]
        return json.dumps({"hits": hits})

    model = chat(
        calling("suche", anfrage="älteste Tramlinie"),
        "Die älteste Linie führt über die Rösslistrasse.",
    )
    create_agent(model, [suche]).invoke(
        {"messages": [("human", "Wie heißt die älteste Straßenbahnlinie Zürichs?")]}, config
    )


@app(
    "two searches at once, one of them a page that was fetched",
    question="How deep is Lake Baikal and who measured it?",
    answer="It is 1,642 metres deep; an expedition measured it with echo sounders.",
    chunks=[
        "Lake Baikal is 1,642 metres deep.",
        "An expedition with echo sounders measured the lake. The ship left Listvyanka in June.",
    ],
)
async def search_and_page(config):
    @tool
    async def search(query: str) -> list[dict]:
        """Search the web."""
        return [{"link": "https://lake.example", "snippet": "Lake Baikal is 1,642 metres deep."}]

    @tool
    async def fetch_page(url: str) -> str:
        """Read a page."""
        return (
            "An expedition with echo sounders measured the lake. The ship left Listvyanka in June."
        )

    model = chat(
        calling_all(("search", {"query": "baikal depth"}), ("fetch_page", {"url": "lake.example"})),
        "It is 1,642 metres deep; an expedition measured it with echo sounders.",
    )
    agent = create_agent(model, [search, fetch_page])
    asked = {"messages": [("user", "How deep is Lake Baikal and who measured it?")]}
    async for _ in agent.astream(asked, config, stream_mode="messages"):
        pass


@app(
    "a list of plain dictionaries printed with str",
    question="Which bakery is open on Monday?",
    answer="Bakery Krume is open on Monday from six. It sells rye bread.",
    prompt=["Krume opens on Monday at 6:00", "Teigwerk is closed on Monday", "Lindenstrasse 3"],
    invented=["It sells rye bread."],
)
def printed_dictionaries(config):
    def places(state: Search):
        return {
            "hits": [
                {"info": "Krume opens on Monday at 6:00", "stars": 4.8, "at": "Lindenstrasse 3"},
                {"info": "Teigwerk is closed on Monday", "stars": 4.1, "at": "Am Markt 9"},
            ]
        }

    def answer(state: Search):
        asked = f"Places nearby: {state['hits']}\n\n{state['question']}"
        reply = chat("Bakery Krume is open on Monday from six. It sells rye bread.").invoke(asked)
        return {"answer": reply.content}

    graph = graph_of(Search, places=places, answer=answer)
    graph.invoke({"question": "Which bakery is open on Monday?"}, config)

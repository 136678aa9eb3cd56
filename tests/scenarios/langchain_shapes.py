"""Shapes in which people write LangChain applications, with the case that each must give.

Data for `test_every_door.py`. A row is a name, what makes the application, what it is asked, and
the texts and the answer of its case; the question is always `QUESTION`.
"""

import dataclasses
import json
from datetime import date
from importlib.metadata import version
from operator import itemgetter
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    dynamic_prompt,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain.tools import ToolException, tool
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_classic.chains import ConversationalRetrievalChain, RetrievalQA
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
)
from langchain_classic.retrievers.document_compressors import LLMChainExtractor
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    chain,
)
from langchain_core.tools import create_retriever_tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command
from packaging.version import Version
from pydantic import BaseModel
from rag_parts import (
    ANSWER,
    HISTORY,
    PROMPT,
    QUESTION,
    REFUNDS,
    SHIPPING,
    BrokenRetriever,
    Completing,
    FixedRetriever,
    TopicRetriever,
    calling,
    documents,
    history_aware_retriever,
    joined,
    model,
    rag_chain,
    retrieval_chain,
)

SOURCES = {"context": FixedRetriever() | joined, "question": RunnablePassthrough()}
LONG = [f"{text} No more is said of it." for text in REFUNDS]
LINES = "\n".join(REFUNDS)
AT_LENGTH = "It takes five days until the money is back."
TEXT = "Money is back in five days. äöü \u2028"
ASK = {"messages": [("user", QUESTION)]}


class Shape(NamedTuple):
    """One application, and the case that it must give, or why there is none.

    Attributes:
        prompt: Words that the rest of the prompt has.
        is_traced: Whether its spans show all of the case.
        ids: The ids of the documents, where the row is about them.
    """

    make: object
    asked: object = QUESTION
    texts: list[str] = REFUNDS
    answer: str = ANSWER
    why_not: str = ""
    prompt: str = ""
    is_traced: bool = True
    ids: list[str] | None = None


class Library(BaseRetriever):
    """Documents with everything that documents can have, one of them twice."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(page_content=TEXT, id="d1"),
            Document(page_content="Shops open at nine.", id="d2", metadata={"score": 0.25}),
            Document(page_content=TEXT, id="d1"),
        ]


LIBRARY = [TEXT, "Shops open at nine."]


def best(docs):
    return docs[:1]


def in_parallel(first, second):
    sources = {"a": first, "b": second, "question": lambda q: q}
    merged = RunnablePassthrough.assign(context=lambda s: joined(s["a"] + s["b"]))
    return sources | merged | PROMPT | model()


def prompted(context):
    return RunnableLambda(lambda q: {"context": context, "question": q}) | PROMPT | model()


def assigned_documents():
    return (
        RunnablePassthrough.assign(docs=itemgetter("question") | FixedRetriever())
        .assign(context=lambda state: joined(state["docs"]))
        .assign(answer=PROMPT | model() | StrOutputParser())
    )


def assigned_reranker(key):
    return (
        RunnablePassthrough.assign(docs=itemgetter("question") | FixedRetriever())
        .assign(**{key: lambda state: best(state["docs"])})
        .assign(context=lambda state: joined(state["docs"]))
        | PROMPT
        | model()
        | StrOutputParser()
    )


def parallel_then_assigned():
    answer = RunnablePassthrough.assign(context=lambda s: joined(s["context"])) | PROMPT | model()
    return RunnableParallel(context=FixedRetriever(), question=RunnablePassthrough()).assign(
        answer=answer | StrOutputParser()
    )


def own_answer_key():
    return RunnablePassthrough.assign(
        context=itemgetter("question") | FixedRetriever() | joined
    ).assign(draft=PROMPT | model() | StrOutputParser())


def mapped():
    return (
        RunnableLambda(lambda q: [q, q + " fast"])
        | TopicRetriever().map()
        | RunnableLambda(best).map()
        | RunnableLambda(lambda lists: [doc for docs in lists for doc in docs])
    )


def compressed():
    return ContextualCompressionRetriever(
        base_retriever=FixedRetriever(texts=REFUNDS[:1]),
        base_compressor=LLMChainExtractor.from_llm(model("five days")),
    )


def search(texts=REFUNDS, *, name="search", response_format="content"):
    return create_retriever_tool(
        FixedRetriever(texts=texts), name, "Searches.", response_format=response_format
    )


@tool
def clock(city: str) -> str:
    """Tells the time."""
    return f"It is noon in {city}."


@tool
def blocks(query: str) -> list:
    """Looks things up."""
    return [{"type": "text", "text": text} for text in REFUNDS]


@tool
def listed(query: str) -> list:
    """Looks things up."""
    return documents()


@tool(response_format="content_and_artifact")
def kept(query: str):
    """Looks things up."""
    return joined(documents()), documents()


@tool
def handbook(question: str) -> str:
    """Answers from the handbook."""
    return rag_chain(llm=model("The handbook says five days.")).invoke(question)


def broken():
    @tool
    def broken(query: str) -> str:
        """Fails."""
        FixedRetriever().invoke(query)
        raise ToolException("out of order")

    broken.handle_tool_error = True
    return broken


def agent(*tools, calls, reply=ANSWER, **options):
    return create_agent(model(*calls, reply), list(tools), **options)


def searching(reply=ANSWER, *, response_format="content", strategy=None):
    calls = [calling("search", query="refunds")]
    options = {} if strategy is None else {"response_format": strategy}
    return agent(search(response_format=response_format), calls=calls, reply=reply, **options)


def middleware():
    @dynamic_prompt
    def with_documents(request):
        return joined(FixedRetriever().invoke(request.state["messages"][-1].text))

    return create_agent(model(), [], middleware=[with_documents])


class Refund(BaseModel):
    """How long it takes."""

    days: int


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    context: str
    generation: str


class Answer(TypedDict):
    generation: str


def retrieve(state):
    return {"documents": FixedRetriever().invoke(state["question"])}


def fetch(state):
    """Asks a store directly: no retriever reports it."""
    return {"documents": documents()}


def grade(state):
    """Keeps the first document, after asking a model about each."""
    for _ in state["documents"]:
        model("yes").invoke("Is this relevant?")
    return {"documents": state["documents"][:1]}


def search_web(state):
    return {"documents": [*state["documents"], *documents(SHIPPING)]}


def generate(state):
    inputs = {"context": joined(state["documents"]), "question": state["question"]}
    return {"generation": (PROMPT | model()).invoke(inputs).text}


def graph(*nodes, state=State, output=None, **options):
    builder = StateGraph(state, output_schema=output or state)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    builder.add_edge(nodes[-1].__name__, END)
    return builder.compile(**options)


def sources_named_beside_the_answer():
    """Says which files it answered from, as many applications do."""

    def answer(question):
        return {
            "answer": rag_chain().invoke(question),
            "documents": ["handbook.pdf", "faq.md"],
        }

    return RunnableLambda(answer)


class Reply(BaseModel):
    text: str
    sure: bool = True


BLOCKS = AIMessage(
    [
        {"type": "reasoning", "reasoning": "They mean money."},
        {"type": "text", "text": "Refunds take "},
        {"type": "image", "url": "https://example.com/a.png"},
        {"type": "text", "text": "five days."},
    ]
)
REFUSAL = AIMessage([{"type": "refusal", "refusal": "I cannot help with that."}])
ITSELF: dict[str, Any] = {"text": "five days."}
ITSELF["itself"] = ITSELF


def replying(reply, parser):
    return rag_chain(llm=model(reply), parser=parser)


def returning(**output):
    return RunnableLambda(lambda question: output)


def answering(answer):
    return RunnablePassthrough() | rag_chain() | RunnableLambda(lambda text: {"answer": answer})


def picked():
    context = itemgetter("question") | FixedRetriever() | joined
    answer = PROMPT | model() | StrOutputParser()
    return RunnablePassthrough.assign(context=context).assign(answer=answer).pick("answer")


@chain
def decorated(question):
    docs = FixedRetriever().invoke(question)
    return (PROMPT | model()).invoke({"context": joined(docs), "question": question}).text


def nested():
    first = {"question": itemgetter("q")} | RunnableLambda(itemgetter("question"))
    return first | rag_chain() | RunnableLambda(lambda text: {"final": text})


def cutting():
    found = []

    def keep(docs):
        found.extend(docs)
        return joined(docs)

    def cut(message):
        for doc in found:
            doc.page_content = doc.page_content[:3]
        return message

    return SOURCES | {"context": FixedRetriever() | keep} | PROMPT | model() | cut


def executor():
    scratchpad = MessagesPlaceholder("agent_scratchpad")
    prompt = ChatPromptTemplate.from_messages([("human", "{input}"), scratchpad])
    tools, llm = [search()], model(calling("search", query="r"), ANSWER)
    return AgentExecutor(agent=create_tool_calling_agent(llm, tools, prompt), tools=tools)


@tool
def look_up(query: str) -> str:
    """Asks a retriever without passing callbacks on."""
    return joined(FixedRetriever().invoke(query))


@tool
def colleague(question: str) -> str:
    """Answers."""
    return f"{ANSWER}\n"


def announcing(name, **arguments):
    return calling(name, **arguments).model_copy(update={"content": "Let me look that up."})


@tool(return_direct=True)
def direct(query: str) -> str:
    """Looks things up."""
    return "found"


@tool(response_format="content_and_artifact")
def keeping(query: str):
    """Looks things up."""
    return "2 documents", documents(prefix="d")


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Strict(BaseModel):
    question: str
    language: str = "en"
    generation: str = ""


@dataclasses.dataclass
class Plain:
    question: str
    language: str = "en"
    generation: str = ""


def reject(state):
    return {"documents": []}


def check(state):
    """Asks a model about the answer that is already there."""
    model("grounded: yes").invoke(str(state.get("generation")))
    return {}


def answer_of_fields(state):
    return {"generation": rag_chain().invoke(state.question)}


def use_tool(state):
    call = {"name": "search", "args": {}, "id": "1", "type": "tool_call"}
    said = [{"role": "tool", "content": text, "tool_call_id": "1"} for text in REFUNDS]
    return {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}, *said]}


def reply(state):
    return {"messages": [model().invoke(state["messages"])]}


async def ask_inner_graph(state):
    inner = await graph(retrieve, generate).ainvoke({"question": state["question"]})
    return {"generation": inner["generation"]}


def at_length(source):
    return rag_chain(source, model(AT_LENGTH), parser=RunnablePassthrough())


class Cited(BaseModel):
    """An answer with its sources."""

    answer: str
    sources: list[str]


class Nested(BaseModel):
    """An answer further inside."""

    result: Cited
    confidence: float


CITED = Cited(answer=AT_LENGTH, sources=["0.md"])


def finding(made):
    return lambda: at_length(FixedRetriever()) | (lambda _: made)


def wished(given):
    return {"reply": at_length(FixedRetriever()).invoke(given["wish"]).text}


class ReportState(MessagesState):
    final_report: str


def report(state):
    return {"final_report": (at_length(FixedRetriever()) | StrOutputParser()).invoke(QUESTION)}


class Reranking(BaseRetriever):
    """Asks another retriever without passing callbacks on, and keeps the first."""

    def _get_relevant_documents(self, query, *, run_manager):
        return FixedRetriever().invoke(query)[:1]


def fused():
    def fuse(lists):
        ranked = [(document, 0.5) for found in lists.values() for document in found]
        return [pair for pair in ranked if pair[0].page_content != REFUNDS[1]]

    search = {"a": FixedRetriever(), "b": FixedRetriever(texts=[SHIPPING[0], REFUNDS[1]])}
    return at_length(search | RunnableLambda(fuse) | (lambda pairs: [d for d, _ in pairs]))


def remembering():
    memories = FixedRetriever(texts=["The user once asked about parking in the yard."])

    def rewrite(given):
        asked = f"{joined(memories.invoke(given['question']))} {given['question']}"
        return model("refund duration").invoke(asked).text

    context = RunnableLambda(rewrite) | FixedRetriever() | joined
    return RunnablePassthrough.assign(context=context) | PROMPT | model(AT_LENGTH)


def text_in_a_state():
    def search(state):
        return {"context": LINES}

    def answer(state):
        asked = f"{state['context']}\n{state['question']}"
        return {"generation": model(AT_LENGTH).invoke(asked).text}

    return graph(search, answer)


def papers():
    return (
        RunnablePassthrough.assign(context=lambda given: joined(given["papers"]))
        | PROMPT
        | model(AT_LENGTH)
    )


class Hits(TypedDict, total=False):
    question: str
    hits: Any
    generation: str


def holding(hold, *, is_traced=True):
    """As a vector store is asked: no retriever reports anything."""

    def search(state):
        return hold([Document(REFUNDS[0], id="r"), Document(REFUNDS[1], id="h")])

    def answer(state):
        return {"generation": model(AT_LENGTH).invoke(f"{LINES}\n{state['question']}").text}

    return Shape(
        lambda: graph(search, answer, state=Hits, output=Answer),
        {"question": QUESTION},
        ids=["r", "h"],
        is_traced=is_traced,
    )


def listing_task(held):
    @task
    def look(question):
        return held

    @entrypoint()
    def answer(given):
        look(given["question"]).result()
        return {"answer": model(AT_LENGTH).invoke("\n".join([*LONG, given["question"]])).text}

    return Shape(lambda: answer, IN_STATE, [], prompt="\n".join(LONG), is_traced=False)


def told(said):
    @tool
    def search(query: str) -> Any:
        """Searches."""
        return said.invoke(query) if isinstance(said, Runnable) else said

    return create_agent(model(calling("search", query="refunds"), AT_LENGTH), [search])


NOON = "It is noon in Ulm."
ULM = calling("clock", city="Ulm")
IN_STATE = {"question": QUESTION}

HUMAN = HumanMessage([{"type": "text", "text": QUESTION}, {"type": "image", "url": "x.png"}])
WITH_HISTORY = {"input": QUESTION, "chat_history": HISTORY}
PIECES = [{"type": "text", "text": "How long "}, {"type": "text", "text": "do refunds take?"}]
DURATION = json.dumps({"duration": "five days", "days": 5})

SHAPES = {
    # Chains
    "chain": Shape(lambda: rag_chain(Library()), texts=LIBRARY),
    "no parser": Shape(lambda: rag_chain(parser=RunnablePassthrough())),
    "documents not formatted": Shape(
        lambda: {"context": FixedRetriever(), "question": lambda q: q} | PROMPT | model()
    ),
    "other inputs": Shape(
        lambda: (
            {"context": itemgetter("q") | FixedRetriever() | joined, "question": itemgetter("q")}
            | PROMPT
            | model()
        ),
        {"q": QUESTION},
    ),
    "assigned": Shape(assigned_documents, IN_STATE),
    "parallel, then assigned": Shape(parallel_then_assigned),
    "an answer under a name of its own": Shape(own_answer_key, IN_STATE),
    "retrieval chain": Shape(lambda: retrieval_chain(Library()), {"input": QUESTION}, LIBRARY),
    "nothing found": Shape(lambda: rag_chain(FixedRetriever(texts=[])), texts=[]),
    "names of files beside the answer": Shape(sources_named_beside_the_answer),
    # Retrieval
    "reranked": Shape(
        lambda: rag_chain(Library() | RunnableLambda(lambda docs: docs[::-1][:1])), texts=[TEXT]
    ),
    "two retrievers": Shape(
        lambda: in_parallel(Library(), FixedRetriever(texts=SHIPPING)), texts=[*LIBRARY, *SHIPPING]
    ),
    "one of two is reranked": Shape(
        lambda: in_parallel(
            FixedRetriever() | RunnableLambda(best), FixedRetriever(texts=SHIPPING)
        ),
        texts=[REFUNDS[0], *SHIPPING],
    ),
    "ensemble": Shape(
        lambda: rag_chain(EnsembleRetriever(retrievers=[Library(), FixedRetriever()])),
        texts=[TEXT, REFUNDS[0], "Shops open at nine.", REFUNDS[1]],
    ),
    "multi-query": Shape(
        lambda: rag_chain(MultiQueryRetriever.from_llm(FixedRetriever(), model("a\nb")))
    ),
    "compressed": Shape(lambda: rag_chain(compressed()), texts=["five days"]),
    "mapped and fused": Shape(
        lambda: rag_chain(mapped()), texts=[f"About {QUESTION}", f"About {QUESTION} fast"]
    ),
    "assigned under the same key": Shape(lambda: assigned_reranker("docs"), IN_STATE, REFUNDS[:1]),
    "assigned under another key": Shape(lambda: assigned_reranker("shown"), IN_STATE),
    "a function that retrieves": Shape(lambda: rag_chain(RunnableLambda(lambda q: documents()))),
    "a filter that leaves nothing": Shape(
        lambda: rag_chain(FixedRetriever() | RunnableLambda(lambda docs: docs[:0])), texts=[]
    ),
    "fallback": Shape(
        lambda: rag_chain(BrokenRetriever().with_fallbacks([Library()])), texts=LIBRARY
    ),
    "prompt variable": Shape(lambda: prompted("Known."), texts=["Known."]),
    "texts in a prompt variable": Shape(lambda: prompted(list(REFUNDS))),
    # Agents
    "agent": Shape(searching, ASK),
    "agent with artifacts": Shape(lambda: searching(response_format="content_and_artifact"), ASK),
    "two searches": Shape(
        lambda: agent(
            search(),
            search(SHIPPING, name="post"),
            calls=[calling("search", query="r"), calling("post", query="p")],
        ),
        ASK,
        REFUNDS + SHIPPING,
    ),
    "a plain tool": Shape(lambda: agent(clock, calls=[ULM]), ASK, [NOON]),
    "a tool that returns blocks": Shape(
        lambda: agent(blocks, calls=[calling("blocks", query="r")], reply="Five days."),
        ASK,
        answer="Five days.",
    ),
    "a tool that returns its documents": Shape(
        lambda: agent(listed, calls=[calling("listed", query="r")], reply="Five days."),
        ASK,
        answer="Five days.",
    ),
    "a tool that keeps its documents": Shape(
        lambda: agent(kept, calls=[calling("kept", query="r")], reply="Five days."),
        ASK,
        answer="Five days.",
    ),
    "a retriever and a plain tool": Shape(
        lambda: agent(search(), clock, calls=[calling("search", query="r"), ULM]),
        ASK,
        [*REFUNDS, NOON],
    ),
    "a chain as a tool": Shape(
        lambda: agent(handbook, calls=[calling("handbook", question="refunds?")]), ASK
    ),
    "a tool that fails": Shape(
        lambda: agent(broken(), clock, calls=[calling("broken", query="r"), ULM]), ASK, [NOON]
    ),
    "a tool that there is not": Shape(
        lambda: agent(clock, calls=[calling("nobody", query="r"), ULM]), ASK, [NOON]
    ),
    "a tool called with the wrong arguments": Shape(
        lambda: agent(clock, calls=[calling("clock", town="Ulm"), ULM]), ASK, [NOON]
    ),
    "a tool call that middleware refuses": Shape(
        lambda: agent(
            clock,
            calls=[ULM, calling("clock", city="Bonn")],
            middleware=[ToolCallLimitMiddleware(run_limit=1)],
        ),
        ASK,
        [NOON],
    ),
    "a list of things to do": Shape(
        lambda: agent(
            clock,
            calls=[calling("write_todos", todos=[{"content": "Ask", "status": "pending"}]), ULM],
            middleware=[TodoListMiddleware()],
        ),
        ASK,
        [NOON],
    ),
    "documents from middleware": Shape(middleware, ASK),
    "a structured answer through a tool": Shape(
        lambda: agent(
            clock,
            calls=[ULM],
            reply=calling("Refund", days=5),
            response_format=ToolStrategy(Refund),
        ),
        ASK,
        [NOON],
        "days: 5",
    ),
    "a structured answer by the provider": Shape(
        lambda: searching('{"days": 5}', strategy=ProviderStrategy(Refund)),
        ASK,
        answer="days: 5",
    ),
    "earlier turns": Shape(
        searching,
        {"messages": [("user", "Where?"), ("assistant", "In Ulm."), ("user", QUESTION)]},
    ),
    # Graphs
    "graph": Shape(lambda: graph(retrieve, generate), IN_STATE),
    "graph that returns the answer only": Shape(
        lambda: graph(retrieve, generate, output=Answer), IN_STATE
    ),
    "graph without a retriever": Shape(lambda: graph(fetch, generate), IN_STATE),
    "graded": Shape(lambda: graph(retrieve, grade, generate), IN_STATE, REFUNDS[:1]),
    "graded, returns the answer only": Shape(
        lambda: graph(retrieve, grade, generate, output=Answer), IN_STATE, REFUNDS[:1]
    ),
    "documents added": Shape(
        lambda: graph(retrieve, search_web, generate), IN_STATE, REFUNDS + SHIPPING
    ),
    # Questions
    "blocks": Shape(lambda: RunnableLambda(lambda message: message.text) | rag_chain(), HUMAN),
    "blocks in a dictionary": Shape(searching, {"messages": [{"role": "user", "content": PIECES}]}),
    "a message": Shape(searching, {"messages": [HumanMessage(QUESTION)]}),
    "rewritten with history": Shape(
        lambda: retrieval_chain(history_aware_retriever()),
        WITH_HISTORY,
    ),
    "a Pydantic state": Shape(
        lambda: graph(answer_of_fields, state=Strict), Strict(question=QUESTION)
    ),
    "a dataclass state": Shape(
        lambda: graph(answer_of_fields, state=Plain), Plain(question=QUESTION)
    ),
    # Answers
    "picked": Shape(picked, IN_STATE),
    "a completion model": Shape(
        lambda: SOURCES | PromptTemplate.from_template("{context}\n{question}") | Completing()
    ),
    "blocks without reasoning": Shape(lambda: replying(BLOCKS, RunnablePassthrough())),
    "structured output": Shape(
        lambda: rag_chain(
            llm=model(calling("Reply", text=ANSWER)).with_structured_output(Reply),
            parser=RunnablePassthrough(),
        )
    ),
    "a parsed dictionary of its own": Shape(
        lambda: replying(DURATION, JsonOutputParser()), answer=DURATION
    ),
    "a text under an odd key": Shape(lambda: answering({("row", 1): ANSWER})),
    "a list that is no JSON": Shape(
        lambda: answering([1, {(): 1}]), answer="1\n\n(): 1", is_traced=False
    ),
    "an object that holds itself": Shape(
        lambda: answering(ITSELF), answer="five days.", is_traced=False
    ),
    "a check afterwards": Shape(lambda: graph(retrieve, generate, check), IN_STATE),
    # Contexts
    "texts beside the answer": Shape(
        lambda: returning(question=QUESTION, contexts=REFUNDS, answer=ANSWER)
    ),
    "a decorated function": Shape(lambda: decorated),
    "a chain inside another": Shape(nested, {"q": QUESTION}),
    "no retrieval": Shape(
        lambda: ChatPromptTemplate.from_template("{question}") | model(), texts=[]
    ),
    "documents that are cut later": Shape(cutting),
    "unusual names in the prompt": Shape(
        lambda: (
            {"knowledge": FixedRetriever(), "ask": lambda q: q}
            | ChatPromptTemplate.from_template("Knowledge: {knowledge}\nAsk: {ask}")
            | model()
        )
    ),
    "rejected, returns the answer only": Shape(
        lambda: graph(retrieve, reject, generate, output=Answer), IN_STATE, []
    ),
    "a tool loop by hand": Shape(lambda: graph(use_tool, reply, state=Chat), ASK),
    "a tool that asks a retriever": Shape(
        lambda: agent(look_up, calls=[calling("look_up", query="r")]), ASK
    ),
    "documents that a tool keeps to itself": Shape(
        lambda: agent(keeping, calls=[calling("keeping", query="r")]),
        ASK,
        ["2 documents"],
    ),
    "a tool that gave the answer": Shape(
        lambda: agent(
            colleague,
            clock,
            calls=[calling("colleague", question="r"), calling("clock", city="Ulm")],
        ),
        ASK,
        ["Refunds take five days.\n", "It is noon in Ulm."],
    ),
    # Legacy chains
    "RetrievalQA": Shape(
        lambda: RetrievalQA.from_chain_type(model(), retriever=FixedRetriever()),
        {"query": QUESTION},
    ),
    "ConversationalRetrievalChain": Shape(
        lambda: ConversationalRetrievalChain.from_llm(
            model(), FixedRetriever(), condense_question_llm=model("refund duration")
        ),
        {"question": QUESTION, "chat_history": [("Hello", "Hi")]},
        is_traced=False,
    ),
    "AgentExecutor": Shape(executor, {"input": QUESTION}),
    # Without a case
    "an empty question": Shape(rag_chain, "  ", why_not="no_question"),
    "an empty answer": Shape(lambda: rag_chain(llm=model("")), why_not="no_answer"),
    "only a prompt": Shape(lambda: SOURCES | PROMPT, why_not="no_answer"),
    "only documents": Shape(
        lambda: model("refund duration") | StrOutputParser() | FixedRetriever(),
        why_not="no_answer",
    ),
    "only what was found for a model's queries": Shape(
        lambda: (
            MultiQueryRetriever.from_llm(FixedRetriever(), model("a\nb"))
            | RunnableLambda(lambda docs: {"found": len(docs)})
        ),
        why_not="no_answer",
    ),
    "a refusal without text": Shape(
        lambda: replying(REFUSAL, RunnablePassthrough()), why_not="no_answer"
    ),
    "a tool's answer, returned directly": Shape(
        lambda: agent(direct, calls=[calling("direct", query="r")]), ASK, why_not="no_answer"
    ),
    "a tool's answer, returned directly after a word": Shape(
        lambda: agent(direct, calls=[announcing("direct", query="r")]), ASK, why_not="no_answer"
    ),
    "a call of a tool": Shape(
        lambda: ChatPromptTemplate.from_template("{question}") | model(calling("clock", city="x")),
        why_not="no_answer",
    ),
}
LISTS = [
    {"query": "x", "results": [{"url": "a", "content": REFUNDS[0]}, {"content": REFUNDS[1]}]},
    {"results": {"documents": [{"page_content": REFUNDS[0]}, {"text": REFUNDS[1]}]}},
    {"query": "x", "documents": REFUNDS},
    REFUNDS,
]
DOCUMENTS = [
    [Document(REFUNDS[0], metadata={"at": date(2026, 1, 2)}), Document(REFUNDS[1], id='it\'s "h"')],
    [(Document(REFUNDS[0]), 0.9), (Document(REFUNDS[1]), 0.5)],
]
HITS = [*map(json.dumps, LISTS), *map(str, LISTS), *LISTS, *map(str, DOCUMENTS), *DOCUMENTS]
# With what else the model was shown of each: the date, and an id of three words.
NO_LISTS = [
    '{"order": 4711, "status": "shipped on Monday", "items": ["desk lamp", "cable"]}',
    '{"days": 5, "rows": [[1, 2]]}',
    "[Document(page_content='cut",
    "['five days', 'written by hand \\d']",
    f"{['five days'] * 1000}",
]


def with_loaded_history():
    """A conversation that a step loads: what the assistant said in it supports nothing."""
    prompt = ChatPromptTemplate.from_template("{history}\n{context}\nQuestion: {question}")
    history = RunnableLambda(lambda _: "User: Hello there.\nAssistant: It takes nine days.")
    sources = {"history": history, "context": FixedRetriever(texts=[]) | joined}
    return (
        sources
        | RunnablePassthrough.assign(question=lambda _: QUESTION)
        | prompt
        | model(AT_LENGTH)
    )


class SearchState(TypedDict, total=False):
    question: str
    query: str
    documents: list[Document]
    result: str
    generation: str


def search_again(state):
    """Writes a better query from documents that no answer may rest on."""
    found = joined(TopicRetriever().invoke("shipping"))
    query = model("How long do refunds take by card?").invoke(f"Outdated: {found}").text
    return {"query": query, "documents": FixedRetriever().invoke(query)}


def answer_query(state):
    prompt = f"{joined(state['documents'])}\n\nQuestion: {state['query']}"
    return {"generation": model(AT_LENGTH).invoke(prompt).text}


ROWS = "[('refund', '5 working days', 'to the card')]"


def ask_database(state):
    return {"query": model("SELECT days FROM refunds").invoke(QUESTION).text, "result": ROWS}


def answer_rows(state):
    return {"generation": model(AT_LENGTH).invoke(f"{state['result']}\n{QUESTION}").text}


def say_yes(state):
    return {"generation": model("Yes.").invoke(joined(documents(REFUNDS[:1])) + QUESTION).text}


def check_yes(state):
    """Grades an answer of one word, which is the grader's as well."""
    model("yes").invoke(f"Is it so? {joined(state['documents'])} {state['generation']}")
    return {}


@tool
def think(thought: str) -> str:
    """Writes a thought down."""
    return f"Thought recorded: {thought}"


@tool
def rated(query: str) -> str:
    """Looks things up, and keeps what a model rates highly."""
    grades = {
        text: model(grade).invoke(text).text for text, grade in zip(REFUNDS, "95", strict=True)
    }
    return "\n".join(text for text, grade in grades.items() if grade == "9")


@tool
def count(since: str) -> str:
    """Counts days."""
    return "5"


def cleared():
    edit = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=20, keep=1)])
    calls = [calling("clock", city="Ulm"), calling("search", query="refunds")]
    return agent(clock, search(), calls=calls, reply=AT_LENGTH, middleware=[edit])


def structured(**options):
    called = calling("Cited", answer=AT_LENGTH, sources=["0.md"])
    llm = model(called).with_structured_output(Cited, **options)
    return rag_chain(llm=llm, parser=RunnablePassthrough())


FACT = "Order 4711 was shipped on Tuesday."
LAMPS = [
    Document("A dimmable desk lamp.", metadata={"price": "40 EUR"}),
    Document("A floor lamp of brass.", metadata={"price": "90 EUR"}),
]
FAQ = [
    Document(QUESTION, metadata={"answer": "Five days after we got the parcel."}),
    Document("Can I return gifts?", metadata={"answer": "Gifts give a voucher."}),
]


class Listing(BaseRetriever):
    """Finds what it was made with."""

    found: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.found


def written(found, form, between="\n\n"):
    """A chain whose prompt shows documents in a form of its own, metadata included."""
    write = RunnableLambda(
        lambda docs: between.join(form.format(d.page_content, **d.metadata) for d in docs)
    )
    return from_text(Listing(found=found) | write)


def from_text(context):
    return {"context": context, "question": RunnablePassthrough()} | PROMPT | model(AT_LENGTH)


def graph_and_documents():
    """Facts of a graph and documents in one text, as in a hybrid search."""
    return RunnableLambda(lambda _: f"Graph:\nACME refunds through Stripe.\n\nTexts:\n{LINES}")


# Applications that answer at length, from what stands in odd places.
ODD = {
    "metadata behind the text": Shape(
        lambda: written(LAMPS, "{} Price: {price}"),
        texts=["A dimmable desk lamp.", "A floor lamp of brass."],
        prompt="A floor lamp of brass. Price: 90 EUR",
    ),
    "metadata before the text": Shape(
        lambda: written(LAMPS, "{price}: {}", "\n"),
        texts=["A dimmable desk lamp.", "A floor lamp of brass."],
        prompt="40 EUR: A dimmable desk lamp.",
    ),
    "questions whose answers are metadata": Shape(
        lambda: written(FAQ, "Q: {}\nA: {answer}"),
        texts=["Can I return gifts?"],
        prompt="A: Five days after we got the parcel.",
    ),
    "names of sources around the text": Shape(
        lambda: written(
            [Document(text, metadata={"source": "a.md"}) for text in REFUNDS], "[1] {source}: {}"
        )
    ),
    "facts beside documents": Shape(
        lambda: from_text(FixedRetriever() | graph_and_documents()),
        prompt="Graph:\nACME refunds through Stripe.",
    ),
    "a tool that adds a fact": Shape(
        lambda: told(f"{LINES}\n\n{FACT}"), ASK, [f"{LINES}\n\n{FACT}"]
    ),
    "a tool that searches and adds a fact": Shape(
        lambda: told(RunnableLambda(lambda _: f"{joined(FixedRetriever().invoke(''))}\n\n{FACT}")),
        ASK,
        prompt=FACT,
    ),
    "prices beside a tool's hits": Shape(
        lambda: told(
            [
                {"title": "Aurora", "content": "A dimmable desk lamp.", "price": "40 EUR"},
                {"title": "Boreas", "content": "A floor lamp of brass.", "price": "90 EUR"},
            ]
        ),
        ASK,
        [
            "A dimmable desk lamp.",
            "A floor lamp of brass.",
        ],
        prompt='"price": "90 EUR"',
        is_traced=False,  # the hits of spans come in too many forms
    ),
    "a history that a step loads": Shape(with_loaded_history, texts=[]),
    "a query that a model wrote from other documents": Shape(
        lambda: graph(search_again, answer_query, state=SearchState), {"question": QUESTION}
    ),
    "a database's result": Shape(
        lambda: graph(ask_database, answer_rows, state=SearchState),
        {"question": QUESTION},
        [],
        prompt=ROWS,
    ),
    "a model's own thought": Shape(
        lambda: agent(
            think,
            search(),
            reply=AT_LENGTH,
            calls=[calling("think", thought=f"Surely: {AT_LENGTH}"), calling("search", query="x")],
        ),
        ASK,
    ),
    "a grade that another tool's text equals": Shape(
        lambda: agent(
            rated,
            count,
            reply=AT_LENGTH,
            calls=[calling("rated", query="x"), calling("count", since="Monday")],
        ),
        ASK,
        [REFUNDS[0], "5"],
    ),
    "a tool's text that middleware cleared": Shape(cleared, ASK),
    "what a model said beside what was parsed": Shape(lambda: structured(include_raw=True)),
    "an answer in an object": Shape(finding(CITED)),
    "an answer in an object's object": Shape(finding(Nested(result=CITED, confidence=0.9))),
    "an answer with citations": Shape(finding({"answer": {"text": AT_LENGTH, "citations": [1]}})),
    "an answer under other keys": Shape(finding({"output": {"result": CITED}, "took": 3.5})),
    "an answer in a structured response": Shape(
        lambda: create_agent(
            model(calling("Cited", answer=AT_LENGTH, sources=["0.md"])), [], response_format=Cited
        ),
        ASK,
        [],
    ),
    "a number is no question": Shape(
        lambda: RunnableLambda(lambda given: {"reply": model().invoke("x").text}),
        3,
        why_not="no_question",
        is_traced=False,
    ),
    "an unknown key": Shape(lambda: RunnableLambda(wished), {"wish": QUESTION}),
    "an unknown key among others": Shape(
        lambda: RunnableLambda(wished), {"wish": QUESTION, "tenant": "acme", "user_id": "u1"}
    ),
    "a report beside messages": Shape(lambda: graph(report, state=ReportState), ASK),
    "what a reranking retriever rejected": Shape(lambda: at_length(Reranking()), texts=REFUNDS[:1]),
    "what a fusion passes on": Shape(fused, texts=[REFUNDS[0], SHIPPING[0]], is_traced=False),
    "memories that a query writer was shown": Shape(remembering, {"question": QUESTION}),
    "a text in the state": Shape(text_in_a_state, {"question": QUESTION}, texts=[LINES]),
    "documents that are the input": Shape(
        papers,
        {"question": QUESTION, "papers": [Document(REFUNDS[0], id="r")]},
        REFUNDS[:1],
        ids=["r"],
    ),
    "tuples with scores": holding(
        lambda found: {"hits": [(each, 0.7) for each in found]}, is_traced=False
    ),
    "nested dictionaries": holding(
        lambda found: {"hits": {"store": {"first": found[:1], "rest": found[1:]}}}, is_traced=False
    ),
    "a command": holding(lambda found: Command(update={"hits": found})),
    "a step's list": listing_task([*LONG, SHIPPING[0]]),
    "a step's list under a key": listing_task({"hits": [*LONG, SHIPPING[0]], "ids": [1, 2]}),
    **{
        f"hits that a tool lists {place}": Shape(
            # Spans hold documents as they are written, without their metadata.
            lambda said=said: told(said),
            ASK,
            prompt="datetime" if "datetime" in str(said) else "",
            is_traced="page_content=" not in str(said),
        )
        for place, said in enumerate(HITS)
    },
    **{
        f"what lists nothing or too much {place}": Shape(lambda said=said: told(said), ASK, [said])
        for place, said in enumerate(NO_LISTS)
    },
}
SHAPES |= {name: shape._replace(answer=AT_LENGTH) for name, shape in ODD.items()}
SHAPES["an answer that a grader says as well"] = Shape(
    lambda: graph(retrieve, say_yes, check_yes), IN_STATE, REFUNDS[:1], "Yes."
)
if Version(version("langchain")) < Version("1.1"):
    del SHAPES["a tool call that middleware refuses"]  # there the agent ends
ASYNCHRONOUS = {"a graph inside a graph": Shape(lambda: graph(ask_inner_graph), IN_STATE)}

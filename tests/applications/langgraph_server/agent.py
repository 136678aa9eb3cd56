"""What the development server serves in `test_server.py`: two graphs."""

from typing import TypedDict

from attached import handler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langgraph.graph import END, START, StateGraph

from langchain_ragaliq import RagaliqGuard

ANSWER = "Refunds are paid within five working days. They come in cash."


class Handbook(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content="Refunds are paid within five working days.")]


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    answer: str
    counts: str


model = FakeListChatModel(responses=[ANSWER])
chain = ChatPromptTemplate.from_template("Answer from {context}: {question}") | model


async def retrieve(state):
    return {"documents": await Handbook().ainvoke(state["question"])}


async def generate(state):
    reply = await chain.ainvoke({"context": state["documents"], "question": state["question"]})
    return {"answer": reply.content}


def count(state):
    stats = handler.monitor.stats()
    return {"counts": f"{dict(stats.outcomes)} {dict(stats.incomplete)} {stats.executor}"}


def graph_of(*steps):
    graph = StateGraph(State)
    for before, step in zip([START, *(s.__name__ for s in steps)], steps, strict=False):
        graph.add_node(step.__name__, step)
        graph.add_edge(before, step.__name__)
    graph.add_edge(steps[-1].__name__, END)
    return graph.compile()


plain = graph_of(retrieve, generate, count)
guard = RagaliqGuard(
    plain, judge="local", fallback="I do not know.", thresholds={"faithfulness": 1}
)


async def answer_guarded(state):
    return {"answer": (await guard.ainvoke({"question": state["question"]}))["answer"]}


guarded = graph_of(answer_guarded)

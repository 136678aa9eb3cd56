"""Scores the answers of a LangChain (LCEL) chain while it runs.

The model's answer is scripted, so that this needs no key. In your application, only the handler
is new.
"""

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import Evaluation


class Handbook(BaseRetriever):
    """A retriever with one document."""

    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:  # noqa: ARG002
        return [Document("Refunds are paid within five working days.")]


def join(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def show(result: Evaluation) -> None:
    for claim in result.results["faithfulness"].claims:
        print(claim.verdict, "-", claim.claim)


chain = (
    {"context": Handbook() | join, "question": RunnablePassthrough()}
    | ChatPromptTemplate.from_template("Answer from {context}: {question}")
    | FakeListChatModel(responses=["Refunds are paid within five working days. We pay in cash."])
    | StrOutputParser()
)

handler = RagaliqCallbackHandler(judge="local", sample_rate=1.0, on_result=show)
print(chain.invoke("How long do refunds take?", config={"callbacks": [handler]}))

# Only scripts and tests wait: a service goes on answering while the worker judges.
handler.monitor.flush(timeout=30)
print(handler.monitor.stats().outcomes)

"""The application of the other file here: a LangChain chain that answers a shop's customers.

The chat model plays back two answers. The second one names a price that no document has.
"""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

PIPELINE = "shop-answers"
HANDBOOK = [
    "The shop is open from nine to five on weekdays. It is closed on Sundays.",
    "Bicycles can be returned within 30 days. The warranty on frames is five years.",
]
ANSWERS = {
    "When is the shop open?": "The shop is open from nine to five on weekdays.",
    "What about returns?": (
        "Bicycles can be returned within 30 days. The warranty on frames is five years. "
        "A return costs 45 euros."
    ),
}


class Handbook(BaseRetriever):
    """Finds everything there is."""

    def _get_relevant_documents(
        self,
        query: str,  # noqa: ARG002 - LangChain's signature
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - as above
    ) -> list[Document]:
        return [Document(page_content=text) for text in HANDBOOK]


def chain() -> Runnable[str, str]:
    """A retriever, a prompt and a chat model."""

    def answer(prompt: PromptValue) -> str:
        question = str(prompt.to_messages()[-1].content)
        model = GenericFakeChatModel(messages=iter([AIMessage(ANSWERS[question])]))
        return str(model.invoke(prompt).content)

    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    parts: dict[str, Any] = {"context": Handbook(), "question": RunnablePassthrough()}
    return (parts | prompt | RunnableLambda(answer)).with_config(run_name=PIPELINE)

"""The chain everybody writes, with a retriever and a model of a given speed."""

import time

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

QUESTION = "How long do refunds take?"
TEXTS = [f"Document {n}. ".ljust(800, "x") for n in range(4)]


class ConstantRetriever(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=text, id=str(n)) for n, text in enumerate(TEXTS)]

    async def _aget_relevant_documents(self, query, *, run_manager):
        return self._get_relevant_documents(query, run_manager=None)


def rag_chain(seconds=0.0, answers=("Five days.",)):
    """A chain whose model takes so many seconds, and gives these answers in turn."""

    def joined(docs):
        return "\n\n".join(doc.page_content for doc in docs)

    def wait(prompt):
        time.sleep(seconds)
        return prompt

    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    sources = {"context": ConstantRetriever() | joined, "question": RunnablePassthrough()}
    model = FakeListChatModel(responses=list(answers))
    if seconds:
        model = RunnableLambda(wait) | model
    return sources | prompt | model | StrOutputParser()

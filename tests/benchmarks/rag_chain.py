"""The chain everybody writes, with a retriever and a model of given speeds."""

import asyncio
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
    texts: list[str] = TEXTS
    seconds: float = 0.0

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=text, id=str(n)) for n, text in enumerate(self.texts)]

    async def _aget_relevant_documents(self, query, *, run_manager):
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return self._get_relevant_documents(query, run_manager=None)


def rag_chain(seconds=0.0, answers=("Five days.",), retriever=None):
    """A chain whose model takes so many seconds, and gives these answers in turn."""

    def joined(docs):
        return "\n\n".join(doc.page_content for doc in docs)

    def wait(prompt):
        time.sleep(seconds)
        return prompt

    async def await_(prompt):
        await asyncio.sleep(seconds)
        return prompt

    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])
    context = (retriever or ConstantRetriever()) | joined
    model = FakeListChatModel(responses=list(answers))
    if seconds:
        model = RunnableLambda(wait, await_) | model
    sources = {"context": context, "question": RunnablePassthrough()}
    return sources | prompt | model | StrOutputParser()

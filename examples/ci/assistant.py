"""The application that CI asks: notes are found by their words, and a model answers from them.

Put your own chain, graph, engine or function in its place: `ragaliq evaluate --app MODULE:NAME`.
"""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

NOTES = {
    "refund": "Refunds are paid within five working days.",
    "open": "The shop opens at 9 on weekdays.",
    "lamp": "The Aurora lamp weighs 310 grams.",
    "warranty": "The warranty of the lamp lasts two years.",
    "parcel": "A parcel to Norway costs twelve euros.",
    "gift": "Gift cards are valid for three years.",
    "repair": "Repairs are done in the workshop in Utrecht.",
    "battery": "The battery of the lamp lasts eight hours.",
    "student": "Students pay ten per cent less.",
    "parking": "Parking behind the shop is free for customers.",
}


def _found(text: str) -> list[str]:
    return [note for word, note in NOTES.items() if word in text.lower()]


class Model(SimpleChatModel):
    """A model that repeats the notes of its prompt."""

    @property
    def _llm_type(self) -> str:
        return "notes"

    def _call(self, messages: list[BaseMessage], *_: Any, **__: Any) -> str:
        return " ".join(_found(str(messages[-1].content).splitlines()[-1]))


def search(question: str) -> list[Document]:
    """Find the notes with a word of the question."""
    return [Document(note) for note in _found(question)]


PROMPT = ChatPromptTemplate.from_template("Answer from these notes: {context}\n{question}")
chain = {"context": RunnableLambda(search), "question": RunnableLambda(str)} | PROMPT | Model()

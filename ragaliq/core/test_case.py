"""One case: a question, the retrieved context and the answer."""

from __future__ import annotations

from sys import getsizeof
from typing import Annotated, Any, Literal, Self
from uuid import uuid4

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from ragaliq.core.citations import Citation
from ragaliq.core.run import RunInfo
from ragaliq.core.thoughts import without_thoughts

DOCUMENT_PLACES = ("source", "file_name", "file_path", "url")
"""Keys of a chunk's metadata with its document's file or address."""

DOCUMENT_NAMES = (*DOCUMENT_PLACES, "title", "document_title", "name", "doc_id")
"""Keys of a chunk's metadata with a name of its document."""

FIELDS: dict[str, tuple[str, ...]] = {
    "id": ("id", "case_id", "example_id", "sample_id"),
    "name": ("name", "title"),
    "query": ("query", "question", "user_input", "input", "prompt"),
    "context": (
        "retrieved_contexts",
        "retrieval_context",
        "contexts",
        "context",
        "retrieved_context",
        "documents",
        "source_documents",
        "docs",
        "chunks",
        "passages",
    ),
    "prompt_context": ("prompt_context",),
    "history": ("history", "chat_history", "conversation_history"),
    "response": ("response", "answer", "actual_output", "output", "prediction", "generated_answer"),
    "expected_answer": (
        "expected_answer",
        "ground_truth",
        "reference",
        "expected_output",
        "reference_answer",
        "ground_truths",
    ),
    "expected_facts": ("expected_facts", "facts"),
    "tags": ("tags",),
    "metadata": ("metadata",),
}
"""Each field of a case with the names it goes by: ragaliq's own, RAGAS's, DeepEval's, LangSmith's.

Where two names of the context are in one row, the first of this list is what was retrieved: other
tools keep an ideal context next to it.
"""

ChunkId = int | str
"""A chunk's own id, or its position in the context where it has none."""


# Convert a framework's own string type to `str`: pydantic refuses half a surrogate pair, which
# models do write, in subclasses only.
_Text = Annotated[
    str, BeforeValidator(lambda text: str.__str__(text) if isinstance(text, str) else text)
]


class ContextChunk(BaseModel):
    """A retrieved piece of text.

    Attributes:
        text: The text in the model's prompt.
        id: The chunk's id in the store it came from; unique within a test case. Without one, the
            chunk is known by its position in the context.
        metadata: The retriever's metadata.
        score: The retriever's score, in the retriever's own unit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    text: _Text
    id: ChunkId | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    score: float | None = None


class _OneMessage:
    """One message for a chunk of the wrong kind; pydantic has one for each kind it might be."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.custom_error_schema(
            handler(source),
            custom_error_type="chunk",
            custom_error_message="a chunk must be a text, such as document.page_content, or a "
            "ContextChunk(text=..., id=..., metadata=..., score=...)",
        )


_Chunk = Annotated[_Text | ContextChunk, _OneMessage]


class Turn(BaseModel):
    """One message of the conversation before the question.

    Attributes:
        role: The author.
        text: The message. What a user states is evidence; what a user asks or only supposes is
            not. An assistant's text never is: one invention would support the next.
        context: The chunks that an assistant's answer was made from, as in a case.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    role: Literal["user", "assistant"]
    text: _Text
    context: list[_Chunk] = Field(default_factory=list)

    @property
    def context_texts(self) -> list[str]:
        """The chunks' texts in rank order."""
        return [chunk if isinstance(chunk, str) else chunk.text for chunk in self.context]

    def chunk_ids(self, position: int) -> list[ChunkId]:
        """Ids of its chunks in results, where it is the turn at this position of a history."""
        own_ids = [None if isinstance(chunk, str) else chunk.id for chunk in self.context]
        return [
            f"history.{position}/{place if own_id is None else own_id}"
            for place, own_id in enumerate(own_ids)
        ]

    @property
    def size(self) -> int:
        """Bytes of its texts."""
        return getsizeof(self.text) + sum(map(getsizeof, self.context_texts))


class CaseSources(BaseModel):
    """Sources of a captured case's parts, so that a wrong guess is visible.

    Attributes:
        question: Such as `input.messages`; empty if the caller set it.
        context: `prompt` if the text occurs in the prompt of the model that answered; else the
            step it was taken from: `given`, `retriever`, `tool`, `step`, `output`; `reply` if the
            model's provider searched; `application` if the application set it.
        answer: Such as `output.answer`.
        no_context: Reason why no context is known: `nothing_retrieved`,
            `nothing_found`, `not_in_prompt`
            (the model that answered was shown none of what was found), `only_replies` (it was shown
            other models' words only).
        has_fetched_texts: Whether texts were fetched for chunks that a trace identifies by id only;
            telemetry and sinks never get them.
        rules: Rules for one product that were applied to the spans of a trace, such as
            `mastra.placeholders`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = ""
    context: str = ""
    answer: str = ""
    no_context: str = ""
    has_fetched_texts: bool = False
    rules: tuple[str, ...] = ()


class RAGTestCase(BaseModel):
    """One question answered by a RAG application, with the context the answer was made from.

    Attributes:
        id: Names the case in results; random when not given.
        name: Shown to people; may be empty.
        query: The user's question.
        context: Retrieved chunks in rank order, as strings or as `ContextChunk`.
        response: The application's answer. A reasoning model's thoughts are removed; thoughts
            without an end mark leave an empty answer.
        prompt_context: The rest of the answering model's prompt as one text: instructions, prompt
            variables, and the chunks in their places. Claims that no chunk supports are checked
            against it; metrics of context quality ignore it.
        history: The conversation before the question, oldest first.
        citations: Citations that the model returned separately from the answer's text.
        expected_answer: The reference answer, for metrics that need one.
        expected_facts: Facts a complete context covers, for metrics that need them.
        tags: Free labels.
        metadata: Anything else to keep with the case.
        sources: Sources of a captured run's question, context and answer.
        run: The run that gave the answer; None if it is not known.

    Raises:
        pydantic.ValidationError: On unknown fields, wrong types, or two chunks with one id. The
            message names the field and quotes nothing.
        TypeError: On a field under another tool's name, such as `question`; on positional values;
            on a text as the context.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    id: str = Field(default_factory=lambda: uuid4().hex)
    name: str = ""
    query: _Text
    context: list[_Chunk] = Field(default_factory=list)
    response: Annotated[_Text, AfterValidator(without_thoughts)]
    prompt_context: _Text = ""
    history: list[Turn] = Field(default_factory=list)
    citations: list[Citation] = Field(default_factory=list)
    expected_answer: str | None = None
    expected_facts: list[str] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    sources: CaseSources = CaseSources()
    run: RunInfo | None = None

    # Not a validator, which would cost a third more wherever a case is read from JSON.
    def __new__(cls, /, *unnamed: Any, **given: Any) -> Self:
        """Refuse other tools' field names with a message that gives ours."""
        if unnamed:
            raise TypeError(f"{cls.__name__}: name each value: query=, context=, response=")
        if isinstance(given.get("context"), str):
            raise TypeError(f"{cls.__name__}: context must be a list; for one chunk context=[...]")
        if not given.keys() <= cls.model_fields.keys():
            written = [
                f"{field}= for {name}="
                for field, names in FIELDS.items()
                for name in names
                if name in given and name not in cls.model_fields
            ]
            if written:
                raise TypeError(f"{cls.__name__}: write {', '.join(written)}")
        return super().__new__(cls)

    @model_validator(mode="after")
    def _chunk_ids_are_unique(self) -> RAGTestCase:
        seen: set[ChunkId] = set()
        for chunk_id in self.chunk_ids:
            if chunk_id in seen:
                raise ValueError(
                    f"two context chunks have the id {chunk_id!r}; give each its own id or none"
                )
            seen.add(chunk_id)
        return self

    # Not cached: a copy made with `model_copy(update=...)` would keep the original's.
    @property
    def context_texts(self) -> list[str]:
        """The chunks' texts in rank order."""
        return [chunk if isinstance(chunk, str) else chunk.text for chunk in self.context]

    @property
    def chunk_ids(self) -> list[ChunkId]:
        """The chunks' ids in rank order: their own, or their position (0-based)."""
        return [
            position if isinstance(chunk, str) or chunk.id is None else chunk.id
            for position, chunk in enumerate(self.context)
        ]

    @property
    def evaluated_run(self) -> RunInfo:
        """The run that results refer to: its own, else one with the case's id."""
        return self.run or RunInfo(run_id=self.id)

    @property
    def other_texts(self) -> dict[ChunkId, str]:
        """The rest of the prompt and the conversation, by their ids in results."""
        texts: dict[ChunkId, str] = {"query": self.query} if self.history else {}
        if self.prompt_context:
            texts["prompt"] = self.prompt_context
        for position, turn in enumerate(self.history):
            texts[f"history.{position}"] = turn.text
            texts.update(zip(turn.chunk_ids(position), turn.context_texts, strict=True))
        return texts

    @property
    def size(self) -> int:
        """Bytes of its texts; labels and metadata are not counted."""
        return (
            getsizeof(self.query)
            + getsizeof(self.response)
            + getsizeof(self.prompt_context)
            + getsizeof(self.expected_answer)
            + sum(map(getsizeof, self.context_texts))
            + sum(map(getsizeof, self.expected_facts))
            + sum(turn.size for turn in self.history)
        )

    @property
    def has_context(self) -> bool:
        """True if any chunk holds more than white space."""
        return any(text.strip() for text in self.context_texts)

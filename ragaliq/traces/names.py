"""The attributes in which tracing conventions keep what a case is made of, each named once."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AttributeNames"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeNames:
    """Attributes of a run's first span that the application itself fills.

    What they hold goes before everything that is guessed. Values may be texts, or JSON as the
    conventions write it.

    Attributes:
        question: Name of the attribute with the user's question; empty for none.
        answer: Name of the attribute with the answer.
        contexts: Name of the attribute with the context: a list of texts, or JSON of one.
    """

    question: str = ""
    answer: str = ""
    contexts: str = ""


# OpenInference.
KIND = "openinference.span.kind"
SESSION = "session.id"
DOCUMENTS = "retrieval.documents"
RERANKED = "reranker.output_documents"
RERANKED_FROM = "reranker.input_documents"
INPUT_MESSAGES = "llm.input_messages"
OUTPUT_MESSAGES = "llm.output_messages"
PROMPT_VARIABLES = "llm.prompt_template.variables"
METADATA = "metadata"

# OpenTelemetry's generative AI convention.
OPERATION = "gen_ai.operation.name"
GENAI_INPUT = "gen_ai.input.messages"
GENAI_OUTPUT = "gen_ai.output.messages"
GENAI_DOCUMENTS = "gen_ai.retrieval.documents"
GENAI_QUERY = "gen_ai.retrieval.query.text"
GENAI_TOOL_RESULT = "gen_ai.tool.call.result"
GENAI_CONVERSATION = "gen_ai.conversation.id"
GENAI_RESPONSE_ID = "gen_ai.response.id"

# OpenLLMetry.
TRACELOOP_KIND = "traceloop.span.kind"
TRACELOOP_INPUT = "traceloop.entity.input"
TRACELOOP_OUTPUT = "traceloop.entity.output"

# Who made a span.
LANGCHAIN_SCOPES = (
    "openinference.instrumentation.langchain",
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.genai.langchain",
)
LLAMA_INDEX_SCOPE = "openinference.instrumentation.llama_index"
HISTORY_WRITERS = ("write_response_to_history", "awrite_response_to_history")
OWN_SCOPE = "ragaliq"

REDACTED = "__REDACTED__"
"""What OpenInference writes in place of content that was switched off."""

"""Results of a provider's own search, and citations in a reply.

They are in no prompt. Providers use many formats; all have dictionaries with a text, in blocks of
results, in the citations of a text, or in the response's metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from ragaliq.core.passages import Passage

_TEXTS = ("cited_text", "page_content", "text", "snippet", "content")
_NAMES = ("url", "uri", "source", "filename", "file_id", "title")
# Of a response's metadata: what Bedrock, Cohere, Gemini, OpenAI and Perplexity call it.
_HELD_BY = (
    "tool_outputs",
    "annotations",
    "citations",
    "documents",
    "grounding_metadata",
    "retrieved_references",
    "search_results",
)
_SAID = frozenset({"segment", "generated_response_part", "query", "queries", "input"})
_MOST_VALUES = 500


def provided_passages(content: Any, *metadata: Any) -> list[Passage]:
    """Passages that a provider found for a reply, each text once.

    Args:
        content: The reply's content: a text, or blocks.
        metadata: Mappings with further keys of the response.
    """
    todo: list[Any] = []
    for block in content if isinstance(content, (list, tuple)) else ():
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind in {"text", "output_text"}:
            todo += [block.get("citations"), block.get("annotations")]
        elif isinstance(kind, str) and ("result" in kind or "search_call" in kind):
            todo.append({key: value for key, value in block.items() if key != "type"})
    for each in metadata:
        # None and dictionaries are known at once; any other mapping takes ten times as long.
        if each is not None and isinstance(each, (dict, Mapping)) and each:
            todo += [each[key] for key in _HELD_BY if key in each]
    return passages_inside(*todo) if todo else []


def passages_inside(*values: Any) -> list[Passage]:
    """The dictionaries with a text inside values as passages, each text once."""
    todo, found, looked_at = list(values)[::-1], dict[str, Passage](), 0
    while todo and looked_at < _MOST_VALUES:
        held = todo.pop()
        looked_at += 1
        if isinstance(held, (list, tuple)):
            todo += reversed(held[:_MOST_VALUES])
        elif isinstance(held, Mapping):
            # Places in a document that was given are in the prompt already.
            is_given = "document_index" in held or "search_result_index" in held
            text = next((held[key] for key in _TEXTS if isinstance(held.get(key), str)), "")
            if text.strip() and not is_given:
                name = next((held[key] for key in _NAMES if isinstance(held.get(key), str)), None)
                score = held.get("score")
                found.setdefault(
                    text, Passage(text, name, score if isinstance(score, float) else None)
                )
            todo += [
                value
                for key, value in islice(held.items(), _MOST_VALUES)
                if key not in _SAID and isinstance(value, (list, tuple, Mapping))
            ][::-1]
    return list(found.values())

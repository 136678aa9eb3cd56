"""The citations that a model's reply carries separately from its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict


class Citation(BaseModel):
    """A source that a model named for a range of its answer, separately from the text.

    Attributes:
        start: First character in the answer, from 0.
        end: End in the answer, exclusive.
        quote: The text quoted from the source.
        source: The source's title, file or address.
        position: The source's place in the context, from 0, where the model counts the chunks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    start: int
    end: int
    quote: str = ""
    source: str = ""
    position: int | None = None


def citations_in(content: object) -> list[Citation]:
    """The citations in the content blocks of a reply, as Anthropic's API returns them.

    A block `{"type": "text", "text": ..., "citations": [...]}` cites for all of its text; so do
    LangChain's `annotations`. Ranges are those of the blocks' texts, joined.

    Args:
        content: A message's content; one without blocks has no citations.
    """
    found: list[Citation] = []
    end = 0
    for block in content if isinstance(content, list | tuple) else ():
        text = block.get("text") if isinstance(block, Mapping) else block
        if not isinstance(text, str):
            continue
        start, end = end, end + len(text)
        listed = (
            block.get("citations") or block.get("annotations")
            if isinstance(block, Mapping)
            else None
        )
        cited = listed if isinstance(listed, list) else []
        found += [_citation(each, start, end) for each in cited if isinstance(each, Mapping)]
    return found


def _citation(block: Mapping[Any, Any], start: int, end: int) -> Citation:
    names = ("document_title", "title", "source", "url", "file_id")
    places = ("document_index", "search_result_index")
    source = next((block[name] for name in names if isinstance(block.get(name), str)), "")
    position = next((block[name] for name in places if isinstance(block.get(name), int)), None)
    quote = block.get("cited_text")
    return Citation(
        start=start,
        end=end,
        quote=quote if isinstance(quote, str) else "",
        source=source,
        position=position,
    )

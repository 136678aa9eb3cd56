"""What the application itself says about its runs, where guessing fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from llama_index.core.schema import BaseNode, NodeWithScore

from llama_index.evaluation.ragaliq.reading import answer_of, passages_of, text_of
from ragaliq import CaseDraft, ConfigurationError, Passage

__all__ = ["Extract", "Facts", "facts_of", "require_function"]

Extract = Callable[[Mapping[str, Any], Any], Mapping[str, Any] | CaseDraft | None]
"""Takes a run's inputs and outputs; gives any of `question`, `contexts` and `answer`."""

_NAMES = ("question", "contexts", "answer")


class Facts(NamedTuple):
    """What the application said of a run; None for what it left to be guessed."""

    question: str | None = None
    context: list[Passage] | None = None
    answer: str | None = None


def require_function(extract: Extract | None) -> None:
    """Refuse what cannot be called with a run's inputs and outputs.

    Raises:
        ConfigurationError: It is no plain function.
    """
    if extract is not None and (not callable(extract) or inspect.iscoroutinefunction(extract)):
        raise ConfigurationError(
            "extract must be a plain function of a run's inputs and outputs, "
            f"got {type(extract).__name__}"
        )


def facts_of(said: Mapping[str, Any] | CaseDraft | None) -> Facts:
    """Read what the application's function returned.

    Raises:
        TypeError: It is of the wrong kind.
    """
    if said is None:
        return Facts()
    if isinstance(said, CaseDraft):
        # What a draft leaves empty is not said.
        return Facts(said.query or None, list(said.passages or ()) or None, said.response or None)
    if not isinstance(said, Mapping):
        raise TypeError(f"extract must return a mapping, not {type(said).__name__}")
    if unknown := sorted(str(key) for key in said if key not in _NAMES):
        raise TypeError(f"extract may return question, contexts and answer, not {unknown}")
    contexts = said.get("contexts")
    return Facts(
        question=text_of(said.get("question")) or None,
        context=None if contexts is None else _passages(contexts),
        answer=answer_of(said.get("answer")) or None,
    )


def _passages(contexts: Any) -> list[Passage]:
    items: Iterable[Any] = [contexts] if isinstance(contexts, str) else contexts
    passages: list[Passage] = []
    for item in items:
        if isinstance(item, str):
            passages.append(Passage(item))
        elif isinstance(item, NodeWithScore | BaseNode):
            passages += passages_of([item])
        else:
            raise TypeError(f"contexts must be texts or nodes, not {type(item).__name__}")
    return passages

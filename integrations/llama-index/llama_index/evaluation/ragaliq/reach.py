"""Which runs a handler follows, where that is not every run of the process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextlib import suppress as undo_if_possible
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llama_index.evaluation.ragaliq.span_handler import RagaliqSpanHandler
    from ragaliq import Monitor

__all__ = ["Reach", "handler_around"]

_ENTERED: ContextVar[tuple[tuple[Reach, RagaliqSpanHandler], ...]] = ContextVar(
    "ragaliq_reaches", default=()
)


class Reach:
    """Covers what starts inside its blocks, or under certain instrument tags, or both.

    Args:
        is_block: Whether only what starts inside `entered()` is covered.
        tags: Tags that a run must have been started under, with these values.
    """

    def __init__(self, *, is_block: bool = False, tags: Mapping[str, Any] | None = None) -> None:
        self._is_block = is_block
        self._tags = dict(tags or {})

    def covers(self, tags: Mapping[str, Any]) -> bool:
        """Whether a run that starts now, under these tags, is followed."""
        if self._is_block and not any(reach is self for reach, _ in _ENTERED.get()):
            return False
        return all(tags.get(name) == value for name, value in self._tags.items())

    @contextmanager
    def entered(self, handler: RagaliqSpanHandler) -> Iterator[None]:
        """Cover what starts inside the block, in its context and the ones copied from it."""
        token = _ENTERED.set((*_ENTERED.get(), (self, handler)))
        try:
            yield
        finally:
            # Left in another context than it was entered in, the value went with that context.
            with undo_if_possible(ValueError):
                _ENTERED.reset(token)


def handler_around(monitor: Monitor) -> RagaliqSpanHandler | None:
    """The handler of a block around the current context that reports to the same monitor."""
    around = [handler for _, handler in _ENTERED.get() if handler.monitor is monitor]
    return around[-1] if around else None

"""Finding question, context and answer of one call, the way the callback handler finds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from langchain_ragaliq.handler import RagaliqCallbackHandler

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler

    from ragaliq import CaseDraft, Monitor, SpanTarget

__all__ = ["Observation", "note_guarded"]


class _Keeping(RagaliqCallbackHandler):
    """A handler that keeps what the call returned, also where the caller gets it in pieces."""

    returned: Any = None

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """A step ended; the call itself ends last."""
        self.returned = outputs
        super().on_chain_end(outputs, **kwargs)


class Observation:
    """What one call of a chain amounts to; a monitor and a ticket as far as a handler needs them.

    Attributes:
        handler: Give it to the call.
        draft: The case, once the call has ended well.
        target: The span to link its evaluation to.
        session_id: The conversation, when the application names it.
        why_not: Why there is no case.
    """

    probability = 1.0

    def __init__(self, **handler_options: Any) -> None:
        self.draft: CaseDraft | None = None
        self.target: SpanTarget | None = None
        self.session_id: str | None = None
        self.run_id = ""
        self.why_not = "not_seen"
        self.handler = _Keeping(cast("Monitor", self), **handler_options)

    def begin(self, run_id: UUID, **kwargs: Any) -> Observation | None:
        """A call has begun; the handler keeps a ticket for it."""
        self.run_id = str(run_id)
        return self

    def sweep_later(self, delay: float, sweepable: object) -> bool:
        """Refuses: a call that never ends is given up with whoever waits for it."""
        return False

    def submit(
        self,
        case: CaseDraft,
        *,
        target: SpanTarget | None = None,
        session_id: str | None = None,
        **kwargs: Any,
    ) -> bool:
        """The call ended well."""
        self.draft, self.target, self.session_id = case, target, session_id
        return True

    def discard(self, reason: str) -> None:
        """The call ended without an answer to check."""
        self.why_not = reason

    def withdraw(self) -> None:
        """A guard further inside has checked the answer."""
        self.why_not = "checked by another guard"


def note_guarded(handlers: Iterable[BaseCallbackHandler], run_id: UUID | None, answer: str) -> None:
    """Tell ragaliq's handlers that an answer has been scored, so that they do not score it again.

    Args:
        handlers: All that watch the run.
        run_id: The run, or any inside it.
        answer: What goes out.
    """
    if run_id is None:
        return
    for handler in handlers:
        if isinstance(handler, RagaliqCallbackHandler):
            handler.scored_by_guard(run_id, answer)

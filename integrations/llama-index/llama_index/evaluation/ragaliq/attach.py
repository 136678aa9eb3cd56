"""Attaching to a LlamaIndex application as a whole, and letting go of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

# The documented name, though LlamaIndex has it in no `__all__`.
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]

import ragaliq
from llama_index.evaluation.ragaliq.span_handler import RagaliqSpanHandler
from ragaliq import ConfigurationError

if TYPE_CHECKING:
    from ragaliq import JudgeSpec, Monitor

__all__ = ["attach", "detach"]

_LOCK = threading.Lock()
# Handlers that came with a monitor of their own, by identity, and what it was built from.
_BUILT: dict[int, tuple[RagaliqSpanHandler, dict[str, Any]]] = {}


def attach(
    monitor: Monitor | None = None,
    *,
    judge: JudgeSpec | str | None = None,
    sample_rate: float | None = None,
    pipeline: str = "",
    **settings: Any,
) -> RagaliqSpanHandler:
    """Score the answers of every query engine, chat engine, agent and workflow of this process.

    Nothing in the application changes. Attaching again with the same monitor or the same settings
    returns the handler that is there; new settings for a pipeline replace its handler, so that a
    notebook cell may run twice.

    A conversation is named with LlamaIndex's `instrument_tags({"session_id": ...})`.

    Args:
        monitor: Decides what is evaluated, and evaluates it; built from the settings by default.
        judge: See `ragaliq.Monitor`.
        sample_rate: See `ragaliq.Monitor`.
        pipeline: The application's name for what it runs.
        **settings: Further arguments of `ragaliq.Monitor`.

    Returns:
        The handler; its `monitor` has `flush`, `stats` and `close`.

    Raises:
        ConfigurationError: A setting is wrong, or was given together with a monitor.
    """
    given = {"judge": judge, "sample_rate": sample_rate, **settings}
    given = {name: value for name, value in given.items() if value is not None}
    if monitor is not None and given:
        raise ConfigurationError(
            f"attach: {', '.join(sorted(given))} belong to the monitor; give them to Monitor(...)"
        )
    with _LOCK:
        existing = _find(monitor, pipeline)
        if existing is not None and (monitor is not None or _BUILT[id(existing)][1] == given):
            return existing
        handler = RagaliqSpanHandler(monitor or ragaliq.Monitor(**given), pipeline=pipeline)
        if existing is not None:
            _remove(existing)
        if monitor is None:
            _BUILT[id(handler)] = (handler, given)
        get_dispatcher().add_span_handler(handler)
        return handler


def detach(handler: RagaliqSpanHandler | None = None) -> None:
    """Stop listening; the monitor keeps what it has until it is closed.

    Runs in progress are counted `interrupted`.

    Args:
        handler: What `attach` returned; every handler of ragaliq by default.
    """
    with _LOCK:
        for attached in _attached():
            if handler is None or attached is handler:
                _remove(attached)


def _attached() -> list[RagaliqSpanHandler]:
    handlers = get_dispatcher().span_handlers
    return [handler for handler in handlers if isinstance(handler, RagaliqSpanHandler)]


def _find(monitor: Monitor | None, pipeline: str) -> RagaliqSpanHandler | None:
    for handler in _attached():
        if monitor is None:
            if id(handler) in _BUILT and handler.pipeline == pipeline:
                return handler
        elif handler.monitor is monitor:
            return handler
    return None


def _remove(handler: RagaliqSpanHandler) -> None:
    dispatcher = get_dispatcher()
    # A new list: another thread may be walking the old one, and would skip somebody's handler.
    # By identity: LlamaIndex's handlers compare equal when their fields do.
    dispatcher.span_handlers = [each for each in dispatcher.span_handlers if each is not handler]
    _BUILT.pop(id(handler), None)
    handler.close()

"""Scoring every chain of the process without touching the chains."""

from __future__ import annotations

import logging
import threading
from contextvars import ContextVar
from typing import Any

from langchain_ragaliq.handler import RagaliqCallbackHandler
from ragaliq import ConfigurationError, Monitor

logger = logging.getLogger("ragaliq.langchain")


class _AttachedHandler(RagaliqCallbackHandler):
    """Permanent hook in LangChain, which cannot be removed, and so is switched on and off.

    While attached it is the attached handler, with all its attributes, so that the same handler
    given to a chain as well counts each run once.
    """

    def __init__(self) -> None:
        self.switch(None)

    def switch(self, handler: RagaliqCallbackHandler | None) -> None:
        before = vars(self)
        is_other = "_registry" in before and (handler is None or before is not vars(handler))
        if is_other:
            before["_searches"].give_up("detached")  # while this is the handler that counts them
        self.__dict__ = dict(_OFF) if handler is None else vars(handler)
        if is_other:
            if handler is not None:
                logger.warning("attach: this handler replaces the one that was attached before")
            before["_registry"].give_up("detached")


# Off, it must not count as inline: other handlers can miss events because of one that is.
_OFF = {name: True for name in dir(RagaliqCallbackHandler) if name.startswith("ignore_")}
_OFF["run_inline"] = False

_LOCK = threading.Lock()
_SWITCH = _AttachedHandler()
# A default reaches every thread; a value set in one context would not.
_HOOK: ContextVar[Any] = ContextVar("ragaliq_attached_handler", default=_SWITCH)
_hooked = False


def attach(
    handler: RagaliqCallbackHandler | None = None,
    *,
    monitor: Monitor | None = None,
    **options: Any,
) -> RagaliqCallbackHandler:
    """Score the answers of every chain in the process.

    Attaching again replaces the handler before, with a warning in the log, so running a notebook
    cell twice stacks nothing. To use several, give them to chains: `config={"callbacks": [...]}`.

    Args:
        handler: The handler; built from the other arguments when not given.
        monitor: See `RagaliqCallbackHandler`.
        **options: See `RagaliqCallbackHandler`.

    Returns:
        The attached handler.

    Raises:
        TypeError: Both a monitor and options for one are given.
        ragaliq.ConfigurationError: An option is wrong.
    """
    # It loads the LangSmith client, which takes longer than everything else here together.
    from langchain_core.tracers.context import register_configure_hook

    global _hooked  # noqa: PLW0603 - a process has one set of LangChain hooks
    if handler is None:
        handler = RagaliqCallbackHandler(monitor, **options)
    if not isinstance(handler, RagaliqCallbackHandler):
        raise ConfigurationError(
            f"attach: handler must be a RagaliqCallbackHandler, got {type(handler).__name__}; "
            "a judge and a monitor are given by name: judge=..., monitor=..."
        )
    with _LOCK:
        if not _hooked:
            register_configure_hook(_HOOK, inheritable=True)
            _hooked = True
        _SWITCH.switch(handler)
    return handler


def detach() -> None:
    """Stop scoring chains without their own handler."""
    with _LOCK:
        _SWITCH.switch(None)

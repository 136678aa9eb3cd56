"""Attachment to a whole LlamaIndex application."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextlib import suppress as undo_if_possible
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

# The documented name, though LlamaIndex has it in no `__all__`.
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]

import ragaliq
from llama_index.evaluation.ragaliq.judge import judge_of
from llama_index.evaluation.ragaliq.span_handler import RagaliqSpanHandler
from ragaliq import ConfigurationError, Monitor
from ragaliq.capture import Chosen, Extract, Keys, takes_only

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from ragaliq import JudgeSpec

__all__ = ["attach", "attached", "detach"]

logger = logging.getLogger("ragaliq.llama_index")


_LOCK = threading.Lock()
# The handlers of the blocks around the current context.
_AROUND: ContextVar[tuple[RagaliqSpanHandler, ...]] = ContextVar("ragaliq_around", default=())


@takes_only(Monitor)
def attach(
    monitor: Monitor | None = None,
    *,
    judge: JudgeSpec | LLM | str | None = None,
    sample_rate: float | None = None,
    pipeline: str = "",
    extract: Extract | None = None,
    question_key: Keys | None = None,
    answer_key: Keys | None = None,
    context_key: Keys | None = None,
    only: Chosen | None = None,
    ignore: Chosen | None = None,
    **settings: Any,
) -> RagaliqSpanHandler:
    """Score the answers of every query engine, chat engine, agent and workflow of this process.

    Nothing in the application changes. Attaching again with the same monitor or the same settings
    returns the handler that is there; new settings for a pipeline replace its handler, with a
    warning in the log, so that a notebook cell may run twice.

    A conversation is named with LlamaIndex's `instrument_tags({"session_id": ...})`.

    Args:
        monitor: Decides what is evaluated, and evaluates it; built from the settings by default.
        judge: See `ragaliq.Monitor`; also one of LlamaIndex's models.
        sample_rate: See `ragaliq.Monitor`.
        pipeline: The application's name for what it runs.
        extract: Says what cannot be guessed; see `RagaliqSpanHandler`, like the next five.
        question_key: Key of the question.
        answer_key: Key of the answer.
        context_key: Key of the context.
        only: Follow only such runs. One monitor may have a handler for each of several choices.
        ignore: Follow no such runs.
        **settings: Further arguments of `ragaliq.Monitor`.

    Returns:
        The handler; its `monitor` has `flush`, `stats` and `close`.

    Raises:
        ConfigurationError: A setting is wrong, or was given together with a monitor.
    """
    given = _monitor_settings(monitor, judge=judge, sample_rate=sample_rate, **settings)
    said: dict[str, Any] = {
        "extract": extract,
        "question_key": question_key,
        "answer_key": answer_key,
        "context_key": context_key,
    }
    # Who wants to be the only one here, and with which settings.
    attached_as = ((monitor or pipeline, only, ignore), given, said)
    with _LOCK:
        same_place = (h for h in _listening() if h.attached_as[:1] == attached_as[:1])
        existing = next(same_place, None)
        if existing is not None and existing.attached_as == attached_as:
            return existing
        handler = RagaliqSpanHandler(
            monitor or _make_monitor(given),
            pipeline=pipeline,
            only=only,
            ignore=ignore,
            **said,
        )
        if existing is not None:
            logger.warning(
                "attach: these settings replace those that were attached before; to use both, "
                "name each pipeline: attach(pipeline=...)"
            )
            _remove(existing)
        vars(handler)["attached_as"] = attached_as
        handler.listen()
        return handler


@takes_only(Monitor)
@contextmanager
def attached(
    monitor: Monitor | None = None,
    *,
    judge: JudgeSpec | LLM | str | None = None,
    sample_rate: float | None = None,
    pipeline: str = "",
    extract: Extract | None = None,
    **settings: Any,
) -> Iterator[RagaliqSpanHandler]:
    """Score only what starts inside the block, whatever else the process runs meanwhile.

    The block counts for the thread or task it is in and what that starts, not for others. A stream
    that was returned inside the block may be read after it. A run that is still open at its
    end is counted `interrupted`. An application that is attached with the same monitor as a whole
    stays so, and its runs count once.

    Args:
        monitor: See `attach`, like all arguments.
        judge: See `ragaliq.Monitor`.
        sample_rate: See `ragaliq.Monitor`.
        pipeline: The application's name for what it runs.
        extract: Says what cannot be guessed; see `RagaliqSpanHandler`.
        **settings: Further arguments of `ragaliq.Monitor`.

    Yields:
        The handler of the block.

    Raises:
        ConfigurationError: A setting is wrong, or was given together with a monitor.
    """
    given = _monitor_settings(monitor, judge=judge, sample_rate=sample_rate, **settings)
    around = [handler for handler in _AROUND.get() if handler.monitor is monitor]
    whole = [
        handler for handler in _listening() if handler.attached_as[:1] == ((monitor, None, None),)
    ]
    if whole or around:
        yield [*around, *whole][-1]
        return

    def covers() -> bool:
        return any(each is handler for each in _AROUND.get())

    handler = RagaliqSpanHandler(
        monitor or _make_monitor(given), pipeline=pipeline, extract=extract, covers=covers
    )
    handler.listen()
    token = _AROUND.set((*_AROUND.get(), handler))
    try:
        yield handler
    finally:
        # Left in another context than it was entered in, the value went with that context.
        with undo_if_possible(ValueError):
            _AROUND.reset(token)
        handler.stop_listening()
        handler.close_open()


def detach(handler: RagaliqSpanHandler | None = None) -> None:
    """Stop listening; the monitor keeps what it has until it is closed.

    Runs in progress are counted `interrupted`.

    Args:
        handler: What `attach` returned; every handler of ragaliq by default.
    """
    with _LOCK:
        for each in _listening():
            if handler is None or each is handler:
                _remove(each)


def _listening() -> list[RagaliqSpanHandler]:
    """Our handlers at the dispatcher, without those that guards add for a call."""
    return [each for each in get_dispatcher().span_handlers if type(each) is RagaliqSpanHandler]


def _monitor_settings(monitor: Monitor | None, **settings: Any) -> dict[str, Any]:
    given = {name: value for name, value in settings.items() if value is not None}
    if monitor is not None and given:
        raise ConfigurationError(
            f"attach: {', '.join(sorted(given))} belong to the monitor; give them to Monitor(...)"
        )
    return given


def _make_monitor(settings: Mapping[str, Any]) -> Monitor:
    return ragaliq.Monitor(**{**settings, "judge": judge_of(settings.get("judge"))})


def _remove(handler: RagaliqSpanHandler) -> None:
    handler.stop_listening()
    handler.close()

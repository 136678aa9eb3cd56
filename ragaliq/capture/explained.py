"""Explanations of a handler's latest runs: their parts, or why they are not evaluated."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import NamedTuple

from ragaliq.capture.run import RunLog
from ragaliq.core.test_case import CaseSources

_LATEST = 64


class Explanation(NamedTuple):
    """Parts of one run's case with their sources, or the reason why it has no case.

    A handler's `explain(run_id)` returns it to a developer who checks what was captured.

    Attributes:
        run_id: The run's id.
        outcome: `submitted`, `withdrawn` (a guard had scored it), or the reason of no case.
        sources: Sources of question, context and answer, and the reason of no context.
        question: The question; empty if none was found.
        contexts: The chunks.
        prompt: Texts of the prompts that say more than the chunks do, such as instructions, without
            models' words and the question. Chunks in them stay in their places.
        answer: The answer; empty if none was found.
        not_shown: Passages that were found but are in none of the relevant prompts.
        cut: Normalized words of models that were removed from the prompts.
    """

    run_id: str
    outcome: str
    sources: CaseSources = CaseSources()
    question: str = ""
    contexts: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""
    not_shown: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()


class Explanations:
    """Explanations of the latest runs of one handler, a few dozen.

    Args:
        logger: Gets a line for each run, at level DEBUG, without any of its texts.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._latest: OrderedDict[str, RunLog | str] = OrderedDict()

    def note(self, run_id: str, found: RunLog | str) -> None:
        """Record a run that ended with a case, or with the reason why there is none."""
        self._latest[run_id] = found
        if len(self._latest) > _LATEST:
            self._latest.popitem(last=False)
        if not self._logger.isEnabledFor(logging.DEBUG):
            return
        if isinstance(found, str):
            self._logger.debug("run %s is not evaluated: %s", run_id, found)
        else:
            where = found.question.where, found.answer.where
            self._logger.debug("run %s is submitted: question %s, answer %s", run_id, *where)

    def of(self, run_id: str) -> Explanation | None:
        """Explanation of a run; None if it is unknown or too old."""
        found = self._latest.get(run_id)
        if found is None or isinstance(found, str):
            return None if found is None else Explanation(run_id, found)
        context = found.found_context
        return Explanation(
            run_id,
            "submitted",
            found.sources,
            found.query,
            tuple(passage.text for passage in context.passages),
            context.prompt,
            found.response,
            tuple(passage.text for passage in context.left_out),
            tuple(context.cut),
        )

"""Runs that a judge's own call has started: scored themselves, they would start further ones."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ragaliq.core.test_case import RAGTestCase

_REMEMBERED = 1_000  # cases
_LEAST = 20  # characters of a text that is looked for


@dataclass(slots=True)
class _Asked:
    began: float
    texts: list[str]
    ended: float = math.inf


class JudgeCalls:
    """The cases that judges of this process were asked about lately; used on the worker's loop.

    Judges are asked inside `suppress()`, which threads of a judge's own know nothing of. A run that
    ended while a case was judged, and whose question holds the case's whole answer or a whole
    chunk, is such a judge's call.
    """

    def __init__(self) -> None:
        self._asked: deque[_Asked] = deque(maxlen=_REMEMBERED)

    @contextmanager
    def asking(self, case: RAGTestCase) -> Iterator[None]:
        """Have a case judged inside the block."""
        texts = [text for text in (case.response, *case.context_texts) if len(text) >= _LEAST]
        asked = _Asked(time.time(), texts)
        self._asked.append(asked)
        try:
            yield
        finally:
            asked.ended = time.time()

    def started(self, question: str, ended_at: float) -> bool:
        """Whether a judge's call has started the run with this question and end."""
        return any(
            each.began <= ended_at <= each.ended and any(text in question for text in each.texts)
            for each in self._asked
        )


JUDGE_CALLS = JudgeCalls()

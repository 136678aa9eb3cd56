"""Detection of runs that a judge's own call started: scoring them would start more."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from ragaliq.core.concurrency import LONG
from ragaliq.core.test_case import RAGTestCase
from ragaliq.judges.language.answers import find_claims

_REMEMBERED = 1_000  # cases
_LEAST = 20  # characters of a text that is looked for
_LEAST_CLAIM = 40  # the same of a claim, as users quote short ones


@dataclass
class _Asked:
    began: float
    answer: str
    chunks: list[str]
    ended: float = math.inf

    @cached_property
    def texts(self) -> list[str]:
        """Texts to look for; found for the first run that ended meanwhile, mostly never."""
        texts = [text for text in (self.answer, *self.chunks) if len(text) >= _LEAST]
        if len(self.answer) <= LONG:  # reading a longer one would hold up the loop
            claims = (self.answer[start:end] for start, end in find_claims(self.answer))
            texts += [claim for claim in claims if len(claim) >= _LEAST_CLAIM]
        return texts


class JudgeCalls:
    """Recent cases that judges of this process were asked about; used on the worker's loop.

    Judges are called inside `suppress()`, which a judge's own threads do not inherit. A run that
    ended while a case was evaluated, and whose question contains the case's whole answer, a whole
    claim or a whole chunk, is a judge's call.
    """

    def __init__(self) -> None:
        self._asked: deque[_Asked] = deque(maxlen=_REMEMBERED)

    @contextmanager
    def asking(self, case: RAGTestCase) -> Iterator[None]:
        """Remember the case while the block evaluates it."""
        asked = _Asked(time.time(), case.response, case.context_texts)
        self._asked.append(asked)
        try:
            yield
        finally:
            asked.ended = time.time()

    def started(self, question: str, ended_at: float) -> bool:
        """True if a judge's call started the run with this question and end."""
        return any(
            each.began <= ended_at <= each.ended and any(text in question for text in each.texts)
            for each in self._asked
        )


JUDGE_CALLS = JudgeCalls()

"""Noticing that a rule about scores sees none, and so can never choose a run."""

from __future__ import annotations

import logging
import threading

from ragaliq.live.sampling.finished import FinishedRun

__all__ = ["Unscored"]

logger = logging.getLogger(__name__)

_ENOUGH = 5  # runs with passages and without a score


class Unscored:
    """Says once that the retriever gives no scores; content when a single one was seen."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Count anew, in a forked child."""
        self._lock = threading.Lock()
        self._runs = 0
        self._is_settled = False

    def look(self, run: FinishedRun) -> None:
        """Count a finished run; one without passages says nothing."""
        if self._is_settled or not run.contexts:
            return
        if run.scores:
            self._is_settled = True
            return
        with self._lock:
            self._runs += 1
            if self._is_settled or self._runs < _ENOUGH:
                return
            self._is_settled = True
        logger.warning(
            "OnLowScore has seen %d runs and no scores: their passages carry none, so it chooses "
            "nothing; put `score` or `relevance_score` into the documents' metadata",
            _ENOUGH,
        )

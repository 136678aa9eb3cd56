"""Logging each kind of failure once: what fails for one run mostly fails for all."""

from __future__ import annotations

import logging

__all__ = ["Complaints"]


class Complaints:
    """Logs failures, without their messages, which may quote the application's text.

    Args:
        logger: Where to.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._made: set[tuple[str, type[BaseException]]] = set()

    def add(self, what: str, error: BaseException) -> None:
        """Log a failure of a kind that was not logged before."""
        complaint = (what, type(error))
        if complaint not in self._made:
            self._made.add(complaint)
            self._logger.warning(
                "%s: %s; further ones are counted, not logged", what, type(error).__name__
            )

"""Logging each kind of failure once: what fails for one run mostly fails for all."""

from __future__ import annotations

import logging
from pathlib import Path


class Complaints:
    """Logs failures, without their messages, which may quote the application's text.

    Args:
        logger: Where to.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._made: set[tuple[str, str]] = set()

    def add(self, what: str, error: BaseException, *, in_application: bool = False) -> None:
        """Log a failure of a kind that was not logged before.

        Args:
            what: What failed.
            error: How.
            in_application: Whether the application's own code raised it: then file and line follow.
        """
        kind = type(error).__name__
        trace = error.__traceback__
        if in_application and trace is not None:
            while trace.tb_next is not None:
                trace = trace.tb_next
            kind += f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
        self.once(kind, f"{what}: {kind}; further ones are counted, not logged", key=what)

    def once(self, kind: str, message: str, *, key: str = "") -> None:
        """Log a message unless one of its kind was logged before."""
        if (key, kind) not in self._made:
            self._made.add((key, kind))
            self._logger.warning(message)

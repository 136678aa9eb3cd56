"""Logging each kind of failure once: what fails for one run mostly fails for all."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class LogOnce:
    """Logs one warning for each kind of failure.

    Attributes:
        logger: Receives the warnings.
    """

    logger: logging.Logger
    _logged: set[tuple[str, str]] = field(default_factory=set)

    def failure(self, what: str, error: BaseException, *, in_application: bool = False) -> None:
        """Log a failure by the class of its error; the message may quote the application's text.

        Args:
            what: The step that failed.
            error: The error it raised.
            in_application: Whether the application's code raised it; adds file and line.
        """
        kind = type(error).__name__
        trace = error.__traceback__
        if in_application and trace is not None:
            while trace.tb_next is not None:
                trace = trace.tb_next
            kind += f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
        self.message(kind, f"{what}: {kind}; further ones are counted, not logged", key=what)

    def message(self, kind: str, message: str, *, key: str = "") -> None:
        """Log a message unless one of its kind was logged before."""
        if (key, kind) not in self._logged:
            self._logged.add((key, kind))
            self.logger.warning(message)

"""What becomes of ragaliq's own mistakes: counted, and told of once."""

from __future__ import annotations

import logging
from typing import Final

__all__ = ["FaultLog"]

logger: Final = logging.getLogger("ragaliq.llama_index")


class FaultLog:
    """Counts our own mistakes, and tells of the first.

    LlamaIndex drops whatever a handler raises without a word, so it is caught before. The message
    of an exception may quote the application's text: only its type and place are logged.
    """

    def __init__(self) -> None:
        self.count = 0
        self._has_extract_failed = False

    def note(self, error: Exception) -> None:
        """Count an exception; log it if it is the first."""
        self.count += 1
        if self.count > 1:
            return
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "?"
        logger.warning(
            "a run could not be captured: %s at %s; later ones are only counted",
            type(error).__name__,
            where,
        )

    def extract_failed(self, error: Exception) -> None:
        """Log the first failure of the application's function; its runs are counted by reason."""
        if not self._has_extract_failed:
            self._has_extract_failed = True
            logger.warning(
                "extract failed (%s); such runs are counted `extract_failed`", type(error).__name__
            )

"""Dates and times as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"(\d{1,5})\s*(m|minutes?|h|hours?|d|days?|w|weeks?)(?:\s+ago)?", re.IGNORECASE)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAYS = ("today", "yesterday")
_WRITTEN = ("%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y", "%d.%m.%Y", "%Y/%m/%d")
DATE_EXAMPLES = "2026-11-27, '2026-11-27 14:30', '27 Nov 2026', yesterday or 7d"


def parse_moment(text: str, *, now: datetime | None = None) -> datetime:
    """Read a day, a time, or a distance from now; in UTC unless it has another offset.

    Dates such as 11/12/2026 are refused: half of the world reads the day first.

    Raises:
        ValueError: The text is neither.
    """
    now = now or datetime.now(UTC)
    text = " ".join(text.split())
    if text.lower() in _DAYS:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=_DAYS.index(text.lower()))
    if ago := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[ago[2][0].lower()]: int(ago[1])})
    for form in _WRITTEN:
        try:
            return datetime.strptime(text.replace(",", ""), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

"""Dates and times as people write them."""

from datetime import UTC, datetime

import pytest

from ragaliq.core.dates import parse_moment

NOW = datetime(2026, 11, 27, 14, 30, tzinfo=UTC)
DAY = datetime(2026, 11, 27, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-27",
        "27 Nov 2026",
        "27 november 2026",
        "Nov 27, 2026",
        "November 27 2026",
        "27.11.2026",
        "2026/11/27",
        "2026-11-27T00:00Z",
        "2026-11-27 02:00+02:00",
        " today ",
    ],
)
def test_a_day_is_its_midnight_in_utc(text):
    assert parse_moment(text, now=NOW) == DAY


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-27 14:30", NOW),
        ("2026-11-27T14:30:00", NOW),
        ("Yesterday", datetime(2026, 11, 26, tzinfo=UTC)),
        ("90m", datetime(2026, 11, 27, 13, tzinfo=UTC)),
        ("2 hours ago", datetime(2026, 11, 27, 12, 30, tzinfo=UTC)),
        ("7d", datetime(2026, 11, 20, 14, 30, tzinfo=UTC)),
        ("1 week ago", datetime(2026, 11, 20, 14, 30, tzinfo=UTC)),
    ],
)
def test_a_time_or_a_distance_from_now_is_read(text, moment):
    assert parse_moment(text, now=NOW) == moment


@pytest.mark.parametrize("text", ["", "monday", "11/12/2026", "2026-13-01", "7", "7 moons", "-1d"])
def test_what_is_no_date_or_has_two_readings_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        parse_moment(text, now=NOW)

"""What goes into the page: figures for its tables, and data for its charts and its answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ragaliq.reports.answers import full_answer
from ragaliq.reports.columns import Series, SeriesKey
from ragaliq.reports.embedding import embedded_json
from ragaliq.reports.figures import METHOD_NAMES, bucket_width, estimate_of, histogram, trend
from ragaliq.reports.gathering import VERDICTS, Gathering
from ragaliq.statistics import Estimate

__all__ = ["Contents", "contents_of"]

# Bytes of the page; with charts and everything else it stays under 15 MB whatever the texts are.
_ROOM_FOR_ANSWERS = 7_000_000
_ROOM_FOR_ROWS = 6_000_000


class Contents(NamedTuple):
    """A page's contents.

    Attributes:
        data: JSON text, safe within a script element.
        figures: What the template writes into tables.
        in_full: Number of answers shown whole.
        in_rows: Number of answers listed.
    """

    data: str
    figures: dict[str, Any]
    in_full: int
    in_rows: int


def contents_of(gathered: Gathering) -> Contents:
    """Put the page's contents together."""
    rows = list(_fitting(gathered.rows(), _ROOM_FOR_ROWS))
    places = {number: place for place, (number, _) in enumerate(rows)}
    answers = _fitting(
        (
            (places[number], full_answer(record))
            for number, record in gathered.answers()
            if number in places
        ),
        _ROOM_FOR_ANSWERS,
    )
    full = {str(place): text for place, text in answers}
    series = [_series(gathered, series) for series in gathered.series.values()]
    head = {
        "pipelines": gathered.pipelines.names,
        "statuses": gathered.statuses,
        "series": series,
        "width": _width(gathered),
    }
    parts = [f'"{name}":{embedded_json(value)}' for name, value in head.items()]
    parts.append(f'"rows":[{",".join(text for _, text in rows)}]')
    parts.append(f'"answers":{{{",".join(f"{json.dumps(k)}:{v}" for k, v in full.items())}}}')
    return Contents(f"{{{','.join(parts)}}}", _figures(gathered, series), len(full), len(rows))


def _fitting(items: Iterable[tuple[int, Any]], room: int) -> Iterable[tuple[int, str]]:
    """The items as JSON; one that is too large for the room that is left is passed over."""
    for key, item in items:
        text = embedded_json(item)
        size = len(text.encode("utf-8", "replace"))
        if size <= room:
            room -= size
            yield key, text


def _width(gathered: Gathering) -> float | None:
    return bucket_width(gathered.first, gathered.last) if gathered.records else None


def _series(gathered: Gathering, series: Series) -> dict[str, Any]:
    """A series as the charts need it: under `all`, and under each pipeline's number."""
    names = gathered.pipelines.names
    several: list[int | None] = list(range(len(names))) if len(names) > 1 else []
    width = _width(gathered)
    return {
        "metric": series.key.metric,
        "judge": series.key.judge,
        "model": series.key.model,
        "decider": _decider(series.key, gathered.series),
        "threshold": series.threshold,
        "higher_is_better": series.higher_is_better,
        "charts": {
            "all" if pipeline is None else str(pipeline): {
                "mean": _mean(estimate_of(series, pipeline)),
                "bins": histogram(series, pipeline),
                "points": trend(series, width, pipeline) if width else [],
            }
            for pipeline in [None, *several]
        },
    }


def _decider(key: SeriesKey, keys: Iterable[SeriesKey]) -> str:
    """What tells a series from others of its metric: two judges may ask the same model."""
    if key.model is None:
        return key.judge
    asked = [
        other.judge for other in keys if (other.metric, other.model) == (key.metric, key.model)
    ]
    return f"{key.judge}, {key.model}" if len(asked) > 1 else key.model


def _mean(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {
        "value": round(estimate.value, 4),
        "low": round(estimate.low, 4),
        "high": round(estimate.high, 4),
        "n": estimate.n,
        "method": METHOD_NAMES.get(estimate.method, estimate.method),
    }


def _figures(gathered: Gathering, charted: list[dict[str, Any]]) -> dict[str, Any]:
    claims: dict[str, dict[str | None, int]] = {}
    for (judge, verdict), count in gathered.claims.most_common(200):
        claims.setdefault(judge, dict.fromkeys(VERDICTS, 0))[verdict] = count
    numbers = range(len(gathered.pipelines.all))
    return {
        "series": [
            {
                "metric": series.key.metric,
                "decider": chart["decider"],
                "threshold": series.threshold,
                "higher_is_better": series.higher_is_better,
                "mean": chart["charts"]["all"]["mean"],
                "spread": series.spread,
                "passed": series.passed_of(),
                "measured": len(series.scores),
                "statuses": series.statuses_of(),
                "pipelines": [
                    chart["charts"].get(str(number), chart["charts"]["all"])["mean"]
                    for number in numbers
                ],
            }
            for series, chart in zip(gathered.series.values(), charted, strict=True)
        ],
        "claims": claims,
        "pipelines": gathered.pipelines.all,
    }

"""Sums over a store, computed by SQLite: nothing is read into memory but the answer.

Scores are those that were measured; failures are counted by status and enter no mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ragaliq.errors import ConfigurationError
from ragaliq.sinks.record import EvaluationRecord
from ragaliq.sinks.sqlite.reading import RecordFilter, open_store, stored_record
from ragaliq.storage.location import Location

__all__ = [
    "ScoreBucket",
    "StoreTotals",
    "score_buckets",
    "score_histogram",
    "status_counts",
    "store_totals",
    "worst_records",
]

_JOINED = "evaluations e JOIN metrics m ON m.evaluation_id = e.evaluation_id"
_MEASURED = "m.score IS NOT NULL AND m.status IN ('scored', 'partial')"
_ALL = RecordFilter()

_BucketRow = tuple[float, int, int, float | None, float | None, float | None, int]


@dataclass(frozen=True, kw_only=True)
class StoreTotals:
    """What a store holds.

    Attributes:
        records: Evaluated runs.
        first: Unix time of the first evaluation; None in an empty store.
        last: Unix time of the last.
        tokens: Tokens of all judges.
        cost_usd: US dollars, as far as known.
        unknown_costs: Records whose cost is not known, and not in the sum.
        pipelines: Records by pipeline.
    """

    records: int
    first: float | None
    last: float | None
    tokens: int
    cost_usd: float
    unknown_costs: int
    pipelines: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class ScoreBucket:
    """One metric in one span of time.

    Attributes:
        start: Unix time at which it begins.
        evaluations: Results of any status.
        measured: Those with a measured score.
        mean: Mean of the measured scores; None without any.
        variance: Their sample variance; None below two.
        weighted_mean: Mean with each score weighted by the number of runs it stands for
            (`RunInfo.weight`): the estimate for all traffic, sampled or not. None where the
            scores stand for none, as those of runs chosen by feedback.
        passed: Measured scores that reach the threshold.
    """

    start: float
    evaluations: int
    measured: int
    mean: float | None
    variance: float | None
    weighted_mean: float | None
    passed: int


def store_totals(location: Location, which: RecordFilter = _ALL) -> StoreTotals:
    """Number, time span, cost and pipelines of the records."""
    condition, values = which.where()
    chosen = f"""FROM evaluations e WHERE EXISTS (
        SELECT 1 FROM metrics m WHERE m.evaluation_id = e.evaluation_id AND {condition}
    )"""  # noqa: S608
    with open_store(location) as connection:
        records, first, last, tokens, cost, unknown = connection.execute(
            f"""SELECT count(*), min(created_at), max(created_at), coalesce(sum(tokens), 0),
            coalesce(sum(cost_usd), 0.0), count(*) - count(cost_usd) {chosen}""",
            values,
        ).fetchone()
        pipelines = connection.execute(
            f"SELECT pipeline, count(*) {chosen} GROUP BY pipeline ORDER BY pipeline",
            values,
        ).fetchall()
    return StoreTotals(
        records=records,
        first=first,
        last=last,
        tokens=tokens,
        cost_usd=cost,
        unknown_costs=unknown,
        pipelines=dict(pipelines),
    )


def status_counts(location: Location, which: RecordFilter = _ALL) -> dict[str, dict[str, int]]:
    """Metric name to number of results by status."""
    condition, values = which.where()
    counts: dict[str, dict[str, int]] = {}
    with open_store(location) as connection:
        for name, status, number in connection.execute(
            f"SELECT m.name, m.status, count(*) FROM {_JOINED} WHERE {condition} "  # noqa: S608
            "GROUP BY m.name, m.status ORDER BY m.name, m.status",
            values,
        ):
            counts.setdefault(name, {})[status] = number
    return counts


def score_buckets(
    location: Location, metric: str, *, seconds: float, which: RecordFilter = _ALL
) -> list[ScoreBucket]:
    """A metric over time, in spans of `seconds` that begin at multiples of it.

    Raises:
        ConfigurationError: `seconds` is not positive.
    """
    if not seconds > 0:
        raise ConfigurationError(f"score_buckets: seconds must be positive, got {seconds}")
    condition, values = which.where()
    # The variance from sums of squares around 0.5, where scores lose the fewest digits.
    statement = f"""
        SELECT CAST(e.created_at / :seconds AS INTEGER) * :seconds, count(*),
            count(value), avg(value), sum((value - 0.5) * (value - 0.5)),
            sum(value * m.weight) / sum(iif(value IS NULL, NULL, m.weight)),
            coalesce(sum(iif(value IS NULL, NULL, m.passed)), 0)
        FROM evaluations e JOIN (
            SELECT m.*, iif({_MEASURED}, m.score, NULL) AS value FROM metrics m
        ) m ON m.evaluation_id = e.evaluation_id
        WHERE m.name = :name AND {condition} GROUP BY 1 ORDER BY 1
    """  # noqa: S608
    with open_store(location) as connection:
        rows = connection.execute(statement, {**values, "seconds": seconds, "name": metric})
        return [_bucket(row) for row in rows]


def score_histogram(
    location: Location, metric: str, *, bins: int = 20, which: RecordFilter = _ALL
) -> list[int]:
    """Numbers of measured scores in `bins` equal parts of [0, 1]; 1.0 is in the last."""
    condition, values = which.where()
    counts = [0] * bins
    with open_store(location) as connection:
        for position, number in connection.execute(
            f"SELECT min(CAST(m.score * :bins AS INTEGER), :bins - 1), count(*) FROM {_JOINED} "  # noqa: S608
            f"WHERE m.name = :name AND {_MEASURED} AND {condition} GROUP BY 1",
            {**values, "bins": bins, "name": metric},
        ):
            counts[position] = number
    return counts


def worst_records(
    location: Location, metric: str, *, limit: int | None = None, which: RecordFilter = _ALL
) -> Iterator[EvaluationRecord]:
    """Records with a measured score of the metric, the worst first; among equals the newer."""
    condition, values = which.where()
    with open_store(location) as connection:
        for (text,) in connection.execute(
            f"SELECT r.record FROM {_JOINED} JOIN records r ON r.evaluation_id = e.evaluation_id "  # noqa: S608
            f"WHERE m.name = :name AND {_MEASURED} AND {condition} "
            "ORDER BY iif(m.higher_is_better, m.score, -m.score), e.created_at DESC LIMIT :limit",
            {**values, "name": metric, "limit": -1 if limit is None else limit},
        ):
            yield stored_record(text)


def _bucket(row: _BucketRow) -> ScoreBucket:
    start, evaluations, measured, mean, squares, weighted_mean, passed = row
    variance = None
    if mean is not None and squares is not None and measured > 1:
        variance = max(0.0, (squares - measured * (mean - 0.5) ** 2) / (measured - 1))
    return ScoreBucket(
        start=float(start),
        evaluations=evaluations,
        measured=measured,
        mean=mean,
        variance=variance,
        weighted_mean=weighted_mean,
        passed=passed,
    )

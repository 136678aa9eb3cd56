"""The worst of many, in bounded memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

from ragaliq.sinks.record import EvaluationRecord, MetricRecord

__all__ = ["Badness", "Worst", "badness", "quality", "take_in_turn"]

T = TypeVar("T")

Badness = tuple[float, int, int]
"""Compares as: the lower the score the worse, then contradicted claims, then uncovered ones."""


def quality(metric: MetricRecord) -> float | None:
    """The score such that 1 is best; None where nothing was measured."""
    if not metric.is_measured or metric.score is None:
        return None
    return metric.score if metric.higher_is_better else 1.0 - metric.score


def badness(record: EvaluationRecord, metric: MetricRecord | None = None) -> Badness | None:
    """How bad an answer is, by one metric or by its lowest; None where nothing was measured."""
    metrics = record.metrics if metric is None else (metric,)
    qualities = [value for value in map(quality, metrics) if value is not None]
    if not qualities:
        return None
    verdicts = [claim.verdict for each in metrics for claim in each.claims]
    return -min(qualities), verdicts.count("CONTRADICTED"), verdicts.count("NOT_ENOUGH_INFO")


class Worst(Generic[T]):
    """Keeps the `limit` worst of what it is given."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[Badness, int, T]] = []

    def add(self, how_bad: Badness, number: int, item: T) -> None:
        """Take in an item; of equals, the one with the higher number stays."""
        entry = (how_bad, number, item)
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, entry)
        elif self._limit and entry[:2] > self._heap[0][:2]:
            heapq.heapreplace(self._heap, entry)

    def worst_first(self) -> list[tuple[int, T]]:
        """The items with their numbers, which no two share."""
        return [(number, item) for _, number, item in sorted(self._heap, reverse=True)]


def take_in_turn(lists: list[list[tuple[int, T]]]) -> Iterator[tuple[int, T]]:
    """The first of each list, then the second of each, and so on; each number once.

    So that a metric whose scores are low as a rule does not crowd out the others.
    """
    seen: set[int] = set()
    for place in range(max(map(len, lists), default=0)):
        for items in lists:
            if place < len(items) and items[place][0] not in seen:
                seen.add(items[place][0])
                yield items[place]

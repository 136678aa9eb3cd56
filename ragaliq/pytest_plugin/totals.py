"""Counts of a test run, which can travel between the processes of pytest-xdist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ragaliq.core.results import EvaluationResult, JudgeUsage

__all__ = ["Totals"]


class Totals:
    """What was scored and spent.

    Attributes:
        cases: Cases asserted on.
        usage: Tokens, requests and money.
    """

    def __init__(self) -> None:
        self.cases = 0
        self.usage = JudgeUsage()
        self._statuses: dict[str, Counter[str]] = {}
        self._sums: Counter[str] = Counter()
        self._passed: Counter[str] = Counter()

    def add(self, results: Mapping[str, EvaluationResult]) -> None:
        """Take in the results of one case."""
        self.cases += 1
        for name, result in results.items():
            self.usage += result.usage
            measured = result.is_measured and result.score is not None
            status = "measured" if measured else result.status.value
            self._statuses.setdefault(name, Counter())[status] += 1
            if measured:
                self._sums[name] += result.score or 0.0  # type: ignore[assignment]
            self._passed[name] += bool(result.passed)

    def as_plain_data(self) -> dict[str, Any]:
        """Everything, as numbers and texts in dictionaries."""
        return {
            "cases": self.cases,
            "usage": self.usage.model_dump(),
            "statuses": {name: dict(counts) for name, counts in self._statuses.items()},
            "sums": dict(self._sums),
            "passed": dict(self._passed),
        }

    def add_plain_data(self, data: Mapping[str, Any]) -> None:
        """Take in another process's counts."""
        self.cases += data["cases"]
        self.usage += JudgeUsage(**data["usage"])
        for name, counts in data["statuses"].items():
            self._statuses.setdefault(name, Counter()).update(counts)
        self._sums.update(data["sums"])
        self._passed.update(data["passed"])

    def lines(self) -> Iterator[str]:
        """A line a metric, and one for the cost."""
        for name, counts in sorted(self._statuses.items()):
            measured = counts["measured"]
            mean = (
                f"mean {self._sums[name] / measured:.2f} of {measured}" if measured else "no mean"
            )
            rest = {status: n for status, n in sorted(counts.items()) if status != "measured"}
            others = "".join(f", {n} {status}" for status, n in rest.items())
            yield f"{name}: {self._passed[name]} of {counts.total()} passed, {mean}{others}"
        cost = self.usage.cost_usd
        price = "cost unknown" if cost is None else f"${cost:.4f}"
        yield f"{self.cases} cases, {self.usage.total_tokens:,} judge tokens, {price}"

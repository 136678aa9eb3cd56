"""One test run: its judges, what they have cost so far, and what came out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragaliq.core.results import Evaluation, Status
from ragaliq.core.sync import run_sync
from ragaliq.errors import BudgetExceeded, ConfigurationError
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import JudgeSpec, resolve_judge
from ragaliq.records import EvaluationRecord, Summary, evaluation_record
from ragaliq.records.sinks import SinkSpec
from ragaliq.scoring.scorer import CostCap
from ragaliq.telemetry import ContentPolicy, Emitter

if TYPE_CHECKING:
    import pytest

__all__ = ["RagSession", "ceiling_of"]


class RagSession:
    """What the tests of one process share.

    Args:
        judge: Who decides, unless a test says otherwise.
        model: Claude's model.
        max_cost: US dollars this process may spend; None for no limit.
        sinks: Where results are stored besides.

    Attributes:
        summary: What was scored and spent.
        records: The same, evaluation by evaluation, as JSON for another process.
    """

    def __init__(
        self,
        judge: JudgeSpec | str = "local",
        *,
        model: str | None = None,
        max_cost: float | None = None,
        sinks: Sequence[SinkSpec] = (),
    ) -> None:
        self.summary = Summary()
        self.records: list[str] = []
        self.sinks = sinks
        self.emitter = Emitter(ContentPolicy.resolve())
        self._default: JudgeSpec | str = judge
        self._model = model
        self._max_cost = max_cost
        self._judges: dict[tuple[str, str | None], LLMJudge] = {}
        self._current: list[LLMJudge] = []

    @classmethod
    def of(cls, config: pytest.Config) -> RagSession:
        """The session that the options ask for.

        Under pytest-xdist each worker gets its share of the ceiling.

        Raises:
            ConfigurationError: An option is wrong.
        """
        max_cost = ceiling_of(_option(config, "ragaliq_max_cost"))
        workers = getattr(config, "workerinput", {}).get("workercount", 1)
        return cls(
            _option(config, "ragaliq_judge") or "local",
            model=_option(config, "ragaliq_model") or None,
            max_cost=None if max_cost is None else max_cost / workers,
            sinks=_option(config, "ragaliq_sinks").split(),
        )

    @property
    def judge(self) -> LLMJudge:
        """The judge of the test that runs, or the run's own."""
        return self._current[-1] if self._current else self._judge(self._default, self._model)

    @contextmanager
    def judging(
        self, judge: JudgeSpec | str | None = None, model: str | None = None
    ) -> Iterator[LLMJudge]:
        """Inside, `judge` decides."""
        chosen = self._judge(self._default if judge is None else judge, model or self._model)
        self._current.append(chosen)
        try:
            yield chosen
        finally:
            self._current.remove(chosen)

    def require_budget(self) -> None:
        """Refuse to spend more.

        Raises:
            BudgetExceeded: The ceiling is reached.
            ConfigurationError: There is a ceiling, but the judge's price is not known.
        """
        cap = CostCap(self._max_cost, spent=self.summary.usage, option="--ragaliq-max-cost")
        if cap.is_reached:
            raise BudgetExceeded(
                f"the tests have spent ${cap.spent.cost_usd:.4f} on the judge, of "
                f"${self._max_cost:.4f} in this process; raise --ragaliq-max-cost to continue"
            )

    def count(self, evaluation: Evaluation) -> None:
        """Take in what came out for one case."""
        record = evaluation_record(evaluation, content=ContentPolicy())
        self.records.append(record.model_dump_json())
        self.summary.add(record)

    def take_in(self, records: Iterable[str]) -> None:
        """Take in what came out in another process: its `records`."""
        for record in records:
            self.summary.add(EvaluationRecord.model_validate_json(record))

    def lines(self) -> Iterator[str]:
        """A line a metric, and one for the cost."""
        for name, metric in sorted(self.summary.metrics.items()):
            passed = metric.passed + sum(metric.statuses[status] for status in metric.passing)
            mean = "no mean"
            if metric.mean is not None:
                mean = f"mean {metric.mean:.2f} of {metric.measured}"
            others = "".join(
                f", {count} {status}"
                for status, count in sorted(metric.statuses.items())
                if not Status(status).is_measured
            )
            yield f"{name}: {passed} of {metric.cases} passed, {mean}{others}"
        usage = self.summary.usage
        price = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
        yield f"{self.summary.records} cases, {usage.total_tokens:,} judge tokens, {price}"

    def close(self) -> None:
        """Close the judges' connections."""
        for judge in self._judges.values():
            run_sync(judge.aclose())

    def _judge(self, spec: JudgeSpec | str, model: str | None) -> LLMJudge:
        if not isinstance(spec, str):
            return resolve_judge(spec)
        if (spec, model) not in self._judges:
            self._judges[spec, model] = resolve_judge(spec, model=model)
        return self._judges[spec, model]


def _option(config: pytest.Config, name: str) -> str:
    given = config.getoption(name)
    return str(config.getini(name) if given is None else given)


def ceiling_of(text: str) -> float | None:
    """US dollars, or None where nothing is said.

    Raises:
        ConfigurationError: It is no amount.
    """
    if not text:
        return None
    try:
        dollars = float(text)
    except ValueError:
        dollars = -1.0
    if not 0.0 <= dollars < float("inf"):
        raise ConfigurationError(f"--ragaliq-max-cost must be US dollars, got {text!r}")
    return dollars

"""`EvaluationJob`: evaluates many cases, with a journal, a cap on money, repeats and goals."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ragaliq.core.results import Evaluation
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import BudgetExceeded, ConfigurationError
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.evaluators.metrics import ClaimEvaluator
from ragaliq.evaluators.rubric import Rubric
from ragaliq.offline.goals import Goal
from ragaliq.offline.journal import CaseIndex, EvaluationJournal
from ragaliq.records.summary import Summary
from ragaliq.reports.wording import WorstAnswers
from ragaliq.scoring.scorer import CostCap, Scorer


class EvaluationJob:
    """Evaluates many cases, and yields each evaluation as soon as it is done.

        job = EvaluationJob(cases, Scorer("claude"), journal="results.jsonl", max_cost=5.0)
        async for evaluation in job:
            ...
        print(job.summary.metrics["faithfulness"].mean, job.is_cut)

    Memory is bounded: a case is read when there is room for it. The scorer is opened with the first
    evaluation and released after the last; when the consumer stops, so does the work.

    Args:
        cases: The cases. With a journal they are read twice.
        scorer: Evaluates them.
        journal: A results file. An existing one is continued: its evaluations that are still valid
            count and are not repeated.
        max_cost: US dollars, including the journal's earlier evaluations, after which no further
            case is begun; cases in progress are finished.
        repeats: Evaluations of each case; the summary counts it once.
        goals: Goals of the results, one or several: `Goal`s, `"faithfulness=0.8"`, or the share of
            answers that must pass, such as 0.9.
        concurrency: Cases evaluated concurrently, in each process.
        pipeline: Name of the pipeline in sinks and telemetry.
        ended_at: Unix time in seconds of runs without a span. In stores it separates evaluations of
            one case at several times.
        index: The cases' index, if they have been read before.

    Attributes:
        scorer: See above.
        summary: The evaluations added up, earlier ones included.
        worst: The answers with the lowest scores.
        is_cut: Whether `max_cost` was reached, so that not every case was begun.
        cap: The cap on money, with what is spent of it.
        goals: The goals.
        journal: The results file, if there is one.

    Raises:
        ConfigurationError: A goal or the cap is wrong, or the judge's price is known to be missing.
    """

    def __init__(
        self,
        cases: Iterable[RAGTestCase],
        scorer: Scorer,
        *,
        journal: EvaluationJournal | str | Path | None = None,
        max_cost: float | CostCap | None = None,
        repeats: int = 1,
        goals: Iterable[Goal | str | float] | Goal | str | float = (),
        concurrency: int = 8,
        pipeline: str = "",
        ended_at: float = 0.0,
        index: CaseIndex | None = None,
    ) -> None:
        for name, value in (("repeats", repeats), ("concurrency", concurrency)):
            if value < 1:
                raise ConfigurationError(f"{name} must be at least 1, got {value}")
        measured = [each.name for each in scorer.metrics]
        self.scorer = scorer
        self.summary, self.worst, self.is_cut = Summary(scorer.metrics), WorstAnswers(), False
        self.journal = EvaluationJournal(journal) if isinstance(journal, str | Path) else journal
        self._cases, self._index, self._repeats = cases, index, repeats
        self.cap = max_cost if isinstance(max_cost, CostCap) else CostCap(max_cost)
        self.cap.require_price(scorer.judge)
        goals = [goals] if isinstance(goals, str | int | float | Goal) else goals
        self.goals = [Goal.of(goal, measured, option="goals:") for goal in goals]
        self._concurrency, self._pipeline, self._ended_at = concurrency, pipeline, ended_at
        self._done: set[str] | None = None

    @property
    def problems(self) -> list[tuple[Goal, str]]:
        """Each goal with its problem, an empty text if it is reached."""
        return [(goal, goal.problem(self.summary)) for goal in self.goals]

    def start(self) -> None:
        """Read the journal; the first evaluation does so if this was not called before.

        Raises:
            DatasetError: It is not a results file, is in use, or was made with other settings.
        """
        if self._done is not None:
            return
        self._done = set()
        if self.journal is None:
            return
        if self._index is None:
            self._cases = list(self._cases)
            self._index = CaseIndex(self._repeats)
            for row, case in enumerate(self._cases, start=1):
                self._index.add(case, row)
        try:
            for record in self.journal.open(self._index, self._settings()):
                self.summary.add(record)
                self.worst.add(record)
                self._done.add(record.run.run_id)
        except BaseException:
            self.journal.close()
            raise
        self.cap.spent += self.journal.spent

    async def __aiter__(self) -> AsyncGenerator[Evaluation]:
        self.start()
        stream = self.evaluations()
        try:
            async with self.scorer, aclosing(stream):
                await self._store_earlier()
                async for evaluation in stream:
                    if self.journal is None:
                        self.summary.add(evaluation)
                        self.worst.add(evaluation)
                        yield evaluation
                        continue
                    whole = self.journal.with_earlier(evaluation)
                    record = self.journal.add(evaluation)
                    self.summary.add(record)
                    self.worst.add(record)
                    yield whole
        except BudgetExceeded:
            self.is_cut = True
        finally:
            if self.journal is not None:
                self.journal.close()

    async def _store_earlier(self) -> None:
        """Give the sinks what they lack of the journal's earlier results.

        The process may have been killed before a sink had them, or the sink's server was down.
        """
        if self.journal is not None and self._done and self.scorer.sinks.workers:
            for record in self.journal.results():
                if not record.revised:
                    await self.scorer.sinks.again(record)

    def evaluations(self) -> AsyncGenerator[Evaluation]:
        """Evaluations of what the journal does not have; `--pending` reads its runs here."""
        return self.scorer.stream(
            self._cases,
            concurrency=self._concurrency,
            pipeline=self._pipeline,
            ended_at=self._ended_at,
            repeats=self._repeats,
            skip=self._done or frozenset(),
            lacking={} if self.journal is None else self.journal.lacking,
            cap=self.cap,
        )

    def _settings(self) -> dict[str, Any]:
        """Settings of the journal's results."""
        judge, metrics = self.scorer.judge, self.scorer.metrics
        strategies = [each.strategy for each in metrics if isinstance(each, ClaimEvaluator)]
        return {
            "judge": judge.name,
            "model": judge.model,
            "calibration": judge.calibration,
            "metrics": {each.name: _made_with(each) for each in metrics},
            "policy": ", ".join(dict.fromkeys(each.policy.name for each in metrics)),
            "strategy": next(filter(None, strategies), None),
            "repeats": self._repeats,
        }


def _made_with(metric: Evaluator) -> float | str:
    """Threshold of a metric, and of a rubric also a digest of its criterion."""
    if not isinstance(metric, Rubric):
        return metric.threshold
    digest = blake2b(metric.criterion.encode(), digest_size=4).hexdigest()
    return f"{metric.threshold:g} by criterion {digest}"

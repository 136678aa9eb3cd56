"""One run of `ragaliq evaluate`: cases in, records out, as far as the budget goes."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import aclosing
from typing import NamedTuple

from ragaliq.cli.resume import case_digest, input_digest
from ragaliq.core.evaluator import Evaluator
from ragaliq.core.results import Evaluation, EvaluationResult, JudgeUsage
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import BudgetExceeded, ConfigurationError
from ragaliq.execution import CaseScorer, choose_scorer
from ragaliq.judges.base import LLMJudge
from ragaliq.records import EvaluationRecord, evaluation_record
from ragaliq.records.record import run_id_of
from ragaliq.streaming import score_stream
from ragaliq.telemetry.content import ContentPolicy
from ragaliq.traces.cases import run_of

__all__ = ["Campaign"]


class _Judging(NamedTuple):
    case: RAGTestCase
    run_id: str


class Campaign:
    """Has cases judged, each as often as asked, and makes records of the results.

    Args:
        evaluators: What is measured.
        judge: Who decides.
        name: Of the data set.
        concurrency: Cases judged at the same time, in each process.
        processes: Processes for the embedded judge, which is work for the processor; 0 to judge in
            this one.
        timeout: Seconds each metric may take.
        repeats: How often each case is judged.
        keep_text: Whether the records hold questions, answers, chunks and claims.
        max_cost: US dollars after which no further case is begun.
        already_spent: Cost of the part that was done before.

    Attributes:
        causes: What the judge's errors said, one of each class; never a text that was judged.
    """

    def __init__(
        self,
        evaluators: Sequence[Evaluator],
        judge: LLMJudge,
        *,
        name: str,
        concurrency: int = 8,
        processes: int = 0,
        timeout: float = 300.0,
        repeats: int = 1,
        keep_text: bool = True,
        max_cost: float | None = None,
        already_spent: JudgeUsage | None = None,
    ) -> None:
        self._evaluators, self._judge, self._name = evaluators, judge, name
        self._concurrency, self._timeout, self._repeats = concurrency, timeout, repeats
        self._content = ContentPolicy(on_spans=keep_text, on_events=keep_text)
        self._max_cost = max_cost
        self._spent = already_spent or JudgeUsage()
        self._processes = processes
        self._unbegun = False
        self.causes: dict[str, str] = {}

    async def records(
        self, cases: Iterable[RAGTestCase], *, done: Set[str] = frozenset()
    ) -> AsyncIterator[EvaluationRecord]:
        """Judge cases and yield a record for each as soon as it is there.

        Args:
            cases: Read as they are needed.
            done: `run_id_of` of what was judged before.

        Raises:
            BudgetExceeded: `max_cost` is reached. What was in work by then has been finished and
                yielded, since it was paid for; nothing was begun after it.
            ConfigurationError: There is a `max_cost` and the judge's price is not known.
        """
        self._spend(JudgeUsage())
        scorers = self._scorers()
        turn = itertools.cycle(scorers)

        async def score(judging: _Judging) -> Mapping[str, EvaluationResult]:
            scorer = next(turn)
            return await scorer.score(judging.case, self._evaluators, deadline=self._timeout)

        todo = self._todo(cases, done)
        concurrency = self._concurrency * len(scorers)
        try:
            async with aclosing(score_stream(todo, score, concurrency=concurrency)) as stream:
                async for judging, results in stream:
                    self._note_causes(results)
                    yield self._record(judging, results)
                    self._spend(sum((r.usage for r in results.values()), JudgeUsage()))
        finally:
            for scorer in scorers:
                await scorer.aclose()
        if self._unbegun:
            raise BudgetExceeded(
                f"${self._spent.cost_usd:.4f} is spent, of --max-cost {self._max_cost:g}; rerun "
                "with --resume and a higher --max-cost to continue"
            )

    def _scorers(self) -> list[CaseScorer]:
        first = choose_scorer(
            None if self._processes else "thread",
            judge=self._judge,
            evaluators=self._evaluators,
            niceness=0,
        )
        if first.executor == "thread":
            return [first]
        return [first, *(first.after_fork() for _ in range(self._processes - 1))]

    def _todo(self, cases: Iterable[RAGTestCase], done: Set[str]) -> Iterator[_Judging]:
        for case in cases:
            for repeat in range(self._repeats):
                run_id = run_id_of(case.id, repeat)
                if run_id in done:
                    continue
                if self._is_spent:
                    self._unbegun = True
                    return
                yield _Judging(case, run_id)

    def _record(
        self, judging: _Judging, results: Mapping[str, EvaluationResult]
    ) -> EvaluationRecord:
        run = run_of(judging.case, run_id=judging.run_id, pipeline=self._name)
        evaluation = Evaluation(case=judging.case, results=results, run=run)
        record = evaluation_record(evaluation, content=self._content)
        digests = {
            "case_digest": case_digest(judging.case),
            "input_digest": input_digest(judging.case),
        }
        return record.model_copy(update=digests)

    def _note_causes(self, results: Mapping[str, EvaluationResult]) -> None:
        for result in results.values():
            if result.status.is_failure and result.error_type and result.error:
                self.causes.setdefault(result.error_type, result.error)

    def _spend(self, usage: JudgeUsage) -> None:
        self._spent += usage
        if self._max_cost is not None and self._spent.cost_usd is None:
            raise ConfigurationError(
                "--max-cost cannot be held: what this judge's model costs is not known"
            )

    @property
    def _is_spent(self) -> bool:
        cost = self._spent.cost_usd
        return self._max_cost is not None and cost is not None and cost >= self._max_cost

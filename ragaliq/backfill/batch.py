"""`score_batch`: a table in, the same table with scores and claims out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from ragaliq.backfill.cases import BadRow, cases_of
from ragaliq.backfill.columns import find_columns
from ragaliq.backfill.judges import judge_of_process
from ragaliq.backfill.schema import Outcome, cells_of, columns_of, schema_of
from ragaliq.backfill.tables import table_of
from ragaliq.core.evaluator import Evaluator
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import EvaluationResult
from ragaliq.core.sync import run_sync
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.case import evaluate_case
from ragaliq.evaluators.metrics import ClaimEvaluator, ContextEvaluator
from ragaliq.evaluators.registry import EvaluatorSpec, resolve_evaluators
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec
from ragaliq.streaming import score_stream

__all__ = ["score_batch", "score_batch_schema"]

T = TypeVar("T")


def score_batch(
    table: T,
    *,
    evaluators: Iterable[EvaluatorSpec] = ("faithfulness", "relevance"),
    judge: JudgeSpec | str = "local",
    model: str | None = None,
    calibration: CalibrationSpec | None = None,
    columns: Mapping[str, str] | None = None,
    policy: ScoringPolicy = ScoringPolicy.RAGALIQ,
    concurrency: int = 8,
    claims: bool = True,
    prefix: str = "",
) -> T:
    """Score every row of a table, for engines that hand over a batch at a time.

    For each metric the columns `METRIC_score` (null where there is none), `METRIC_passed`,
    `METRIC_status`, `METRIC_error` and `METRIC_claims` are added after the table's own, and
    `ragaliq_judge`, `ragaliq_model`, `ragaliq_tokens`, `ragaliq_cost_usd` for the row; their types
    are those of `score_batch_schema`. The rows stay in their order. A row that is no case has the
    status `bad_row` and in `METRIC_error` what is wrong with it.

    Keeps nothing between calls but the judge, of which a process makes one for the same `judge`,
    `model` and `calibration`. Works in any thread, and inside a running event loop, which it holds
    up.

    Args:
        table: A `pandas.DataFrame`, `pyarrow.Table` or `pyarrow.RecordBatch`; it stays as it is.
        evaluators: What is measured: names, classes or evaluators.
        judge: `local`, `claude`, a cascade such as `local>claude`, or a judge.
        model: Claude's model.
        calibration: For the judge that is named, or the file it is in.
        columns: A case's field to the column it is in, such as `{"query": "frage"}`; a nested
            field with a dot. By default columns are recognised by the names data-set files use.
        policy: For evaluators without a policy of their own.
        concurrency: Rows evaluated at the same time.
        claims: Whether the claims, which are texts of the answer, are in the result.
        prefix: Put before the name of every column that is added.

    Raises:
        ConfigurationError: A setting is wrong, pyarrow is missing, or the table is of no known
            kind or has one of the added columns already.
        DatasetError: A column is missing, or two look like one field.
    """
    _require_settings(concurrency, prefix, policy)
    given = table_of(table)
    chosen = tuple(e.with_default_policy(policy) for e in resolve_evaluators(evaluators))
    _require_free(given.names, schema_of(chosen, claims=claims, prefix=prefix).names)
    places = find_columns(given.names, columns or {}, needed=_needed(chosen))
    decider = judge_of_process(judge, model=model, calibration=calibration)
    for evaluator in chosen:
        evaluator.require(decider)
    rows = _Rows(chosen, claims=claims)
    run_sync(rows.score(cases_of(given, places), decider, concurrency))
    schema = schema_of(chosen, claims=claims, prefix=prefix)
    added = columns_of(rows.cells(), decider, schema)
    scored: T = given.with_columns(added)
    return scored


def score_batch_schema(
    *,
    evaluators: Iterable[EvaluatorSpec] = ("faithfulness", "relevance"),
    claims: bool = True,
    prefix: str = "",
) -> Any:
    """The columns that `score_batch` adds, as a `pyarrow.Schema`, for engines that ask beforehand.

    Args:
        evaluators: As for `score_batch`.
        claims: As for `score_batch`.
        prefix: As for `score_batch`.

    Raises:
        ConfigurationError: An evaluator is not known, or pyarrow is missing.
    """
    return schema_of(resolve_evaluators(evaluators), claims=claims, prefix=prefix)


def _require_settings(concurrency: object, prefix: object, policy: object) -> None:
    is_whole = isinstance(concurrency, int) and not isinstance(concurrency, bool)
    if not is_whole or concurrency < 1:  # type: ignore[operator]
        raise ConfigurationError(
            f"score_batch: concurrency must be a whole number from 1, got {concurrency!r}"
        )
    if not isinstance(prefix, str):
        raise ConfigurationError(f"score_batch: prefix must be a text, got {prefix!r}")
    if not isinstance(policy, ScoringPolicy):
        raise ConfigurationError(
            f"score_batch: policy must be a ScoringPolicy, got {type(policy).__name__}"
        )


def _require_free(names: Sequence[str], added: Sequence[str]) -> None:
    taken = [name for name in added if name in names]
    if taken:
        raise ConfigurationError(
            f"the table has the column {taken[0]!r} already, as if it had been scored before; "
            "drop it, or give the new columns a prefix=..."
        )


def _needed(evaluators: Iterable[Evaluator]) -> list[str]:
    # Without its column every row's context would be empty, and every answer look unsupported.
    reads_context = any(isinstance(e, ClaimEvaluator | ContextEvaluator) for e in evaluators)
    return ["query", "response", *(["context"] if reads_context else [])]


class _Rows:
    """The rows as they are scored: of a result only what goes into the table is kept."""

    def __init__(self, evaluators: Sequence[Evaluator], *, claims: bool) -> None:
        self._evaluators, self._claims = evaluators, claims
        self._cells: dict[int, list[Any]] = {}

    async def score(
        self, rows: Iterable[RAGTestCase | BadRow], judge: LLMJudge, concurrency: int
    ) -> None:
        async def score(numbered: tuple[int, RAGTestCase]) -> Mapping[str, EvaluationResult]:
            return await evaluate_case(numbered[1], self._evaluators, judge)

        scored: AsyncGenerator[tuple[tuple[int, RAGTestCase], Mapping[str, EvaluationResult]], None]
        scored = score_stream(self._good(rows), score, concurrency=concurrency)
        async with aclosing(scored) as stream:
            async for (place, _), results in stream:
                self._keep(place, results)

    def cells(self) -> Iterator[list[Any]]:
        """What is added to each row, in their order."""
        return (self._cells[place] for place in range(len(self._cells)))

    def _good(self, rows: Iterable[RAGTestCase | BadRow]) -> Iterator[tuple[int, RAGTestCase]]:
        for place, row in enumerate(rows):
            if isinstance(row, BadRow):
                self._keep(place, row)
            else:
                yield place, row

    def _keep(self, place: int, outcome: Outcome) -> None:
        self._cells[place] = cells_of(outcome, self._evaluators, claims=self._claims)

"""`score_batch`: a table in, the same table with scores and claims out.

For engines that work batch by batch, such as Ray Data and Spark.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.sync import run_sync
from ragaliq.core.test_case import FIELDS, RAGTestCase
from ragaliq.datasets.cases import (
    case_of,
    is_absent,
    plain_name,
    recognised,
    require_known,
)
from ragaliq.datasets.rows import Row
from ragaliq.errors import ConfigurationError, DatasetError, RowError
from ragaliq.evaluators.metrics import ClaimEvaluator, ContextEvaluator
from ragaliq.evaluators.registry import EvaluatorSpec, resolve_evaluators
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec, resolve_judge
from ragaliq.offline.job import EvaluationJob
from ragaliq.records.sinks import SinkSpec
from ragaliq.scoring.scorer import CostCap, Scorer
from ragaliq.tables.kinds import (
    UNREADABLE,
    Outcome,
    Table,
    UnscoredRow,
    cells_of,
    columns_of,
    schema_of,
    table_of,
)
from ragaliq.telemetry.content import ContentPolicy, Redactor
from ragaliq.telemetry.emit import TelemetryOptions

__all__ = ["judge_of_process", "score_batch", "score_batch_schema"]

T = TypeVar("T")


def score_batch(
    table: T,
    *,
    metrics: Iterable[EvaluatorSpec] | None = None,
    judge: JudgeSpec | str = "local",
    model: str | None = None,
    calibration: CalibrationSpec | None = None,
    columns: Mapping[str, str] | None = None,
    policy: ScoringPolicy = ScoringPolicy.LIVE,
    concurrency: int = 8,
    deadline: float | None = None,
    max_cost: float | None = None,
    claims: bool = True,
    sinks: Iterable[SinkSpec] = (),
    pipeline: str = "",
    capture_content: bool | None = None,
    redact: Redactor | None = None,
    redact_for_judge: Redactor | None = None,
    telemetry: TelemetryOptions | None = None,
) -> T:
    """Score every row of a table, for engines that pass one batch at a time.

    For each metric the columns `METRIC_score` (null where there is none), `METRIC_passed`,
    `METRIC_status`, `METRIC_error` and `METRIC_claims` are added after the table's own, and
    `ragaliq_judge`, `ragaliq_model`, `ragaliq_tokens`, `ragaliq_cost_usd` for the row; their types
    are those of `score_batch_schema`. The order of the rows stays. A row that is not a valid case
    has the status `bad_row` and its problem in `METRIC_error`.

    Between calls a process keeps only the judge, one for each `judge`, `model` and `calibration`.
    Works in any thread, and inside a running event loop, which it blocks.

    Args:
        table: A `pandas.DataFrame`, `pyarrow.Table` or `pyarrow.RecordBatch`; it is not modified.
        metrics: Metrics: names, classes or instances; by default faithfulness, and relevance if the
            judge is a language model.
        judge: `local`, `claude`, a cascade such as `local>claude`, or a judge.
        model: The model of `claude` or `openai`, where the judge's name has none.
        calibration: Calibration of the named judge, or its file.
        columns: Columns by a case's field, such as `{"query": "frage"}`. By default columns are
            recognised by the usual names of data sets.
        policy: Policy of metrics without their own; by default an answer with nothing to verify has
            no score and does not pass.
        concurrency: Rows evaluated concurrently.
        deadline: Most seconds for each metric of a row; no limit by default.
        max_cost: US dollars after which no further row of this table is begun; those rows have the
            status `over_budget`.
        claims: Whether the result contains the claims, which are texts of the answer.
        sinks: Additional stores of results, as for `evaluate`.
        pipeline: Name of the pipeline in sinks and telemetry.
        capture_content: Whether the texts may enter sinks and telemetry; by default from the
            environment, else no.
        redact: Called with each text, and its kind, before it enters a sink or telemetry.
        redact_for_judge: Called with each text of a case, and its kind (`question`, `answer`,
            `chunk`), before the judge sees it; results show what it returns.
        telemetry: Shape and providers of the telemetry; see `TelemetryOptions`.

    Raises:
        ConfigurationError: A setting is wrong, pyarrow is missing, the table is of an unknown type
            or has one of the added columns already.
        DatasetError: A column is missing, or two match one field.
    """
    given = table_of(table)
    decider = judge_of_process(judge, model=model, calibration=calibration)
    chosen = resolve_evaluators(metrics, judge=decider)
    schema = schema_of(chosen, claims=claims)
    taken = next((name for name in schema.names if name in given.names), None)
    if taken is not None:
        raise ConfigurationError(
            f"the table has the column {taken!r} already, as if it had been scored before; "
            "drop or rename it"
        )
    # Without its column every context would be empty, and every answer unsupported.
    reads_context = any(isinstance(each, ClaimEvaluator | ContextEvaluator) for each in chosen)
    needed = ["query", "response", *(["context"] if reads_context else [])]
    places = _find_columns(given.names, columns or {}, needed=needed)
    scorer = Scorer(
        decider,
        chosen,
        policy=policy,
        deadline=deadline,
        telemetry=telemetry,
        redact_for_judge=redact_for_judge,
        content=ContentPolicy.resolve(capture_content=capture_content, redact=redact),
        sinks=sinks,
        keeps_judge=True,
    )
    cells: dict[int, list[Any]] = {}  # of a result only what goes into the table is kept
    rows: list[int] = []  # of the cases, by position

    def keep(row: int, outcome: Outcome) -> None:
        cells[row] = cells_of(outcome, chosen, claims=claims)

    def cases() -> Iterator[RAGTestCase]:
        for row, case in enumerate(_cases_of(given, places)):
            if isinstance(case, UnscoredRow):
                keep(row, case)
            else:
                rows.append(row)
                yield case

    job = EvaluationJob(
        cases(),
        scorer,
        max_cost=CostCap(max_cost, option="score_batch: max_cost"),
        concurrency=concurrency,
        pipeline=pipeline,
        ended_at=time.time(),
    )

    async def score() -> None:
        async for evaluation in job:
            keep(rows[evaluation.position], evaluation.results)

    run_sync(score())
    # Mark the rows that the cap kept from being evaluated.
    over = UnscoredRow("over_budget", "max_cost was reached before this row")
    found = (cells.get(row) or cells_of(over, chosen, claims=claims) for row in range(given.rows))
    scored: T = given.with_columns(columns_of(found, decider, schema))
    return scored


def score_batch_schema(
    *,
    metrics: Iterable[EvaluatorSpec] | None = None,
    judge: JudgeSpec | str = "local",
    claims: bool = True,
) -> Any:
    """Schema of the columns that `score_batch` adds, for engines that need it beforehand.

    Args:
        metrics: As for `score_batch`.
        judge: As for `score_batch`; ignored if `metrics` is given.
        claims: As for `score_batch`.

    Raises:
        ConfigurationError: A metric or the judge is not known, or pyarrow is missing.
    """
    decider = resolve_judge(judge) if metrics is None else None
    measured = resolve_evaluators(metrics, judge=decider)
    return schema_of(measured, claims=claims)


def _cases_of(table: Table, places: Mapping[str, int]) -> Iterator[RAGTestCase | UnscoredRow]:
    """Each row in its order; `places` holds the column of each field."""
    columns = {field: table.values(place) for field, place in places.items()}
    for row in range(table.rows):
        try:
            yield _case(row + 1, {field: values[row] for field, values in columns.items()})
        except RowError as error:
            yield UnscoredRow("bad_row", str(error).partition(": ")[2])
        except Exception as error:  # noqa: BLE001 - a cell may be any object: one row, not the batch
            yield UnscoredRow("bad_row", f"the row cannot be read ({type(error).__name__})")


def _case(number: int, cells: Mapping[str, Any]) -> RAGTestCase:
    # Only some metrics need a question; a blank answer has its own status.
    where, present = f"row {number}", {"query": "", "response": ""}
    for field, value in cells.items():
        if value is UNREADABLE:
            raise RowError(f"{where}: the {field}'s column holds a value that is not text")
        if not is_absent(value):
            present[field] = value
    return case_of(Row(where, present, number), {})


# --- which column is which field --------------------------------------------------------------

# Fields that scores depend on. Other fields only label a case, and an odd value would reject the
# row without need: they are read only if `columns` names them.
_RECOGNISED = ("query", "context", "response", "expected_answer", "expected_facts")
_SHOWN = 30


def _find_columns(
    names: Sequence[str], own_names: Mapping[str, str], *, needed: Sequence[str]
) -> dict[str, int]:
    """Column of each field, as given to `score_batch` or recognised."""
    require_known(own_names, argument="columns")
    shown = ", ".join(repr(name[:40]) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    there_are = f"the table's columns are {shown}{more}" if names else "the table has no columns"
    found: dict[str, int] = {}
    for field, name in own_names.items():
        if names.count(name) > 1:
            raise DatasetError(
                f"{names.count(name)} columns are called {name!r}; rename all but one"
            )
        if name not in names:
            raise ConfigurationError(
                f"columns: there is no column {name!r} for the {field}: {there_are}"
            )
        found[field] = names.index(name)
    for field in _RECOGNISED:
        if field in own_names:
            continue
        meant = [place for place, name in enumerate(names) if recognised(name) == field]
        if field == "context" and meant:
            # Other tools store an ideal context in addition to the retrieved one.
            order = FIELDS["context"]
            meant = [min(meant, key=lambda place: order.index(plain_name(names[place])))]
        if len(meant) > 1:
            several = " and ".join(repr(names[place]) for place in meant)
            raise DatasetError(
                f"the columns {several} both look like the {field}; say which with "
                f"columns={{{field!r}: ...}}"
            )
        if meant:
            found[field] = meant[0]
        elif field in needed:
            raise DatasetError(
                f"no column was found for the {field}: {there_are}. Name it one of "
                f"{', '.join(FIELDS[field])}, or say which it is with columns={{{field!r}: ...}}"
            )
    return found


# --- one judge a process: an engine's worker scores thousands of batches -----------------------

_JUDGES: dict[tuple[object, ...], LLMJudge] = {}


def judge_of_process(
    judge: JudgeSpec | str, *, model: str | None, calibration: CalibrationSpec | None
) -> LLMJudge:
    """Judge of this process for the same arguments; a judge object is returned as it is."""
    if not isinstance(judge, str) or not isinstance(calibration, str | Path | None):
        return resolve_judge(judge, model=model, calibration=calibration)
    written = None  # when the calibration was: a new one makes another judge
    with suppress(OSError):
        written = None if calibration is None else Path(calibration).stat().st_mtime_ns
    # A forked worker must not use its parent's connections.
    key = (os.getpid(), judge, model, calibration and str(calibration), written)
    if key not in _JUDGES:
        made = resolve_judge(judge, model=model, calibration=calibration)
        # If several threads make the first judge, one wins. No lock, which a fork could leave held.
        _JUDGES.setdefault(key, made)
    return _JUDGES[key]

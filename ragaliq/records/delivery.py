"""What sinks for products share: one request for each record, and facts beside a score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from ragaliq.records.base import SinkError
from ragaliq.records.record import EvaluationRecord

__all__ = ["deliver_each", "entry_id", "metric_facts"]

_OF_ONE_RECORD = ("http_400", "http_404", "http_409", "http_413", "http_422", "rejected")


async def deliver_each(
    records: Sequence[EvaluationRecord], send: Callable[[EvaluationRecord], Awaitable[None]]
) -> None:
    """Send one record after the other; one that is refused does not keep the others from arriving.

    Raises:
        SinkError: Some were not delivered. A trouble that concerns the receiver as a whole ends the
            round, so that a dead one is asked once and not once for each record.
    """
    undelivered: list[EvaluationRecord] = []
    worst: SinkError | None = None
    for position, record in enumerate(records):
        try:
            await send(record)
        except SinkError as error:
            if not _concerns_one_record(error):
                undelivered.extend(records[position:])
                worst = error
                break
            undelivered.append(record)
            # What may pass is tried again, so it decides when both occur.
            worst = error if worst is None or worst.permanent else worst
    if worst is not None:
        raise SinkError(
            str(worst),
            kind=worst.kind,
            permanent=worst.permanent,
            retry_after=worst.retry_after,
            undelivered=undelivered,
        )


def _concerns_one_record(error: SinkError) -> bool:
    return error.kind in _OF_ONE_RECORD


def entry_id(record: EvaluationRecord, metric: str) -> str:
    """The id of a metric's entry where one entry is kept for each id.

    A job that is delivered twice may fail the second time: what has no score is an entry of its
    own, and never takes a score's place.
    """
    metric_id = record.metric_id(metric)
    return metric_id if record.results[metric].score is not None else f"{metric_id}-status"


def metric_facts(record: EvaluationRecord, metric: str) -> dict[str, str | float]:
    """Numbers and names that go beside a score; never texts."""
    result = record.results[metric]
    verdicts = Counter(claim.verdict or "UNVERIFIED" for claim in result.claims)
    facts: dict[str, str | float | None] = {
        "ragaliq.status": result.status.value,
        "ragaliq.threshold": result.threshold,
        "ragaliq.judge": result.judge,
        "ragaliq.model": result.model,
        "ragaliq.judge.calibration": result.calibration,
        "ragaliq.version": record.version,
        "ragaliq.error_type": result.error_type,
        "ragaliq.run_id": record.run.run_id,
        "ragaliq.pipeline": record.run.pipeline,
        "ragaliq.sampling.probability": record.run.sampling_probability,
        "ragaliq.evaluation_id": record.evaluation_id,
        "ragaliq.metric_id": record.metric_id(metric),
        **{f"ragaliq.claims.{verdict.lower()}": n for verdict, n in verdicts.items()},
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}

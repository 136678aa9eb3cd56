"""Checks that every question was evaluated and that the judge worked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handbook.errors import DemoError
from handbook.questions import Question
from handbook.safety import clean
from ragaliq import Evaluation, EvaluationResult

__all__ = ["by_question", "check_judge"]


def by_question(
    questions: Sequence[Question], received: Sequence[Evaluation], outcomes: Mapping[str, int]
) -> dict[str, Evaluation]:
    """Results by question id.

    Raises:
        DemoError: A question has no result.
    """
    by_text = {live.case.query: live for live in received}
    missing = [item.id for item in questions if item.question not in by_text]
    if missing:
        raise DemoError(
            f"no evaluation arrived for {', '.join(missing)}; runs by outcome: {dict(outcomes)}"
        )
    return {item.id: by_text[item.question] for item in questions}


def check_judge(live: Mapping[str, Evaluation]) -> None:
    """Complain when the judge failed.

    Raises:
        DemoError: It failed on some evaluation; the message holds the first error.
    """
    results = [result for entry in live.values() for result in entry.results.values()]
    failed = [result for result in results if result.error_type is not None]
    if failed:
        raise DemoError(
            f"{len(failed)} of {len(results)} evaluations failed; the first: {_error(failed[0])}"
        )


def _error(result: EvaluationResult) -> str:
    return clean(f"{result.status}: {result.error or result.error_type}")

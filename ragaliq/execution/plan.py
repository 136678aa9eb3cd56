"""Evaluators and judge as plain data, to be built again in another process.

Only what ragaliq itself defines can be written down: a class of the user's would have to be
imported, and its module may be the application's `__main__`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ragaliq.core.evaluator import Evaluator
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.test_case import RAGTestCase
from ragaliq.evaluators.registry import get_evaluator, list_evaluators
from ragaliq.judges.resolve import resolve_judge

if TYPE_CHECKING:
    from ragaliq.judges.base import LLMJudge

__all__ = ["case_data", "obstacle", "read_evaluators", "read_judge", "write_plan"]

Data = dict[str, Any]

_OWN = "ragaliq.evaluators."


def obstacle(judge: LLMJudge, evaluators: Sequence[Evaluator]) -> str | None:
    """What of a monitor cannot be written as plain data, in words; None when all of it can."""
    from ragaliq.judges.calibration import CalibratedJudge
    from ragaliq.judges.local import LocalJudge

    screen = judge.judge if type(judge) is CalibratedJudge else judge
    if type(screen) is not LocalJudge:
        return f"the judge is a {type(screen).__name__}, not the embedded judge"
    if screen.embed:
        return "the embedded judge was given an embedding function"
    for evaluator in evaluators:
        kind = type(evaluator)
        registered = kind.name in list_evaluators() and get_evaluator(kind.name) is kind
        if not (registered and kind.__module__.startswith(_OWN)):
            return f"{kind.__name__} is not one of ragaliq's own evaluators"
        if changed := sorted(set(vars(evaluator)) - {*_settings(kind), "_policy"}):
            return f"{kind.__name__} was changed after it was built: {', '.join(changed)}"
    return None


def write_plan(evaluators: Sequence[Evaluator], judge: LLMJudge) -> Data:
    """The embedded judge and these evaluators as plain data; `obstacle` must have found none."""
    from ragaliq.judges.calibration import CalibratedJudge

    calibration = judge.curve if isinstance(judge, CalibratedJudge) else None
    return {
        "judge": "local",
        "calibration": calibration and calibration.model_dump(mode="json"),
        "evaluators": [_write_evaluator(each) for each in evaluators],
    }


def read_judge(plan: Data) -> LLMJudge:
    """The judge a plan names."""
    from ragaliq.judges.calibration import Calibration

    told = plan["calibration"]
    calibration = None if told is None else Calibration.model_validate(told)
    return resolve_judge(plan["judge"], calibration=calibration)


def read_evaluators(plan: Data) -> dict[str, Evaluator]:
    """A plan's evaluators, by name."""
    return {row["name"]: _read_evaluator(row) for row in plan["evaluators"]}


def case_data(case: RAGTestCase) -> Data:
    """What evaluators look at; labels and metadata, which may hold any object, stay behind."""
    return case.model_dump(
        exclude={"name": True, "tags": True, "metadata": True, "context": {"__all__": {"metadata"}}}
    )


def _settings(kind: type[Evaluator]) -> list[str]:
    # Every evaluator keeps what it was built with under the argument's name.
    return list(inspect.signature(kind).parameters)


def _write_evaluator(evaluator: Evaluator) -> Data:
    settings = {name: getattr(evaluator, name) for name in _settings(type(evaluator))}
    # As text, so that equal policies are read as one: evaluators share a claim check when their
    # policies are equal, and a policy with a NaN in it equals itself only.
    settings["policy"] = json.dumps(evaluator.policy.model_dump())
    return {"name": evaluator.name, "settings": settings}


def _read_evaluator(row: Data) -> Evaluator:
    settings = row["settings"] | {"policy": _read_policy(row["settings"]["policy"])}
    return get_evaluator(row["name"])(**settings)


@cache
def _read_policy(written: str) -> ScoringPolicy:
    return ScoringPolicy.model_validate(json.loads(written))

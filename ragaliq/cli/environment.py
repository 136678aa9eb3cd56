"""What is wrong with the environment's variables, as the code that reads them says it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from difflib import get_close_matches

from ragaliq.core.naming import naming
from ragaliq.errors import ConfigurationError
from ragaliq.judges.calibration import Calibration
from ragaliq.live.settings import (
    ENV_CALIBRATION,
    chosen_judge,
    read_judge_settings,
    settings_problems,
    settings_variables,
)
from ragaliq.telemetry import names
from ragaliq.telemetry.content import ContentPolicy
from ragaliq.telemetry.emit import TelemetryOptions
from ragaliq.worker_tier.broker import ENV_BROKER_URL, broker_url

__all__ = ["environment_problems", "known_variables"]

PREFIX = "RAGALIQ_"


def known_variables() -> frozenset[str]:
    """Every variable of ours that is read."""
    return settings_variables() | {
        ENV_BROKER_URL,
        names.ENV_CAPTURE_CONTENT,
        names.ENV_RELATION,
        names.ENV_CLAIM_DETAIL,
        names.ENV_ON_UNSAMPLED,
    }


def environment_problems() -> list[str]:
    """All that is wrong, a line each. The variables are named, and no secret is shown."""
    problems = [*_unknown(), *settings_problems()]
    for check in _checks():
        try:
            check()
        except ConfigurationError as error:
            problems.append(str(error))
    return list(dict.fromkeys(problems))


def _unknown() -> Iterator[str]:
    known = known_variables()
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            nearest = get_close_matches(name, known, n=1, cutoff=0.8)
            meant = f"; did you mean {nearest[0]}?" if nearest else ""
            yield f"{name}: nothing reads a variable of this name{meant}"


def _load_calibration() -> None:
    with naming(ENV_CALIBRATION):
        Calibration.load(os.environ[ENV_CALIBRATION])


def _checks() -> Iterator[Callable[[], object]]:
    # Each is what a monitor or a command would do, so that it says what they would say.
    yield lambda: chosen_judge(read_judge_settings(), None, None)
    if os.environ.get(ENV_CALIBRATION):
        # Whatever is wrong with the judge: the file is to be there.
        yield _load_calibration
    if os.environ.get(ENV_BROKER_URL):
        yield lambda: broker_url(None)
    yield lambda: TelemetryOptions(claim_detail="spans", on_unsampled="metrics")
    yield lambda: TelemetryOptions(relation="link", on_unsampled="metrics")
    yield lambda: TelemetryOptions(relation="link", claim_detail="spans")
    yield ContentPolicy.resolve

"""From what a user writes, `"local"`, `"claude"` or a judge, to the judge."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ragaliq.core.checks import did_you_mean
from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import LLMJudge

if TYPE_CHECKING:
    from ragaliq.judges.calibration import Calibration

JudgeSpec = LLMJudge | Literal["local", "claude", "cascade"]
CalibrationSpec: TypeAlias = "Calibration | str | Path"
"""A calibration, or the file it is in."""


def resolve_judge(
    judge: JudgeSpec | str,
    *,
    model: str | None = None,
    calibration: CalibrationSpec | None = None,
) -> LLMJudge:
    """The judge that `judge` names.

    Args:
        judge: `local`, `claude`, a cascade of them such as `local>claude`
            (`cascade` for short), or a judge, which is returned as it is.
        model: Claude's model; by default the one named in `DEFAULT_JUDGE_MODEL`.
        calibration: What makes the judge's confidence a probability, or the file it is in; of a
            cascade that is named, the first judge's.

    Raises:
        ConfigurationError: No such judge, Claude without credentials, or a calibration that was
            made for another judge.
    """
    return assembled(named_judges(judge, model=model), calibration)


def named_judges(judge: JudgeSpec | str, *, model: str | None = None) -> list[LLMJudge]:
    """The judges that `judge` names: those of a cascade, else one.

    A judge's SDK is loaded here, when the judge is built, and not with the first answer: a second
    of import would land in somebody's request.
    """
    if isinstance(judge, LLMJudge):
        return [judge]
    judges: list[LLMJudge] = []
    for name in stage_names(judge) if isinstance(judge, str) else [judge]:
        if name == "local":
            from ragaliq.judges.local import LocalJudge

            judges.append(LocalJudge())
        elif name == "claude":
            from ragaliq.judges.claude import DEFAULT_JUDGE_MODEL, ClaudeJudge

            judges.append(ClaudeJudge(model or DEFAULT_JUDGE_MODEL))
        elif isinstance(name, str) and name.startswith("entailment:"):
            judges.append(entailment_judge().named(name))
        else:
            what = type(name).__name__
            if isinstance(name, str):
                what = f"{shown_name(name)}{did_you_mean(name, ('local', 'claude'))}"
            raise ConfigurationError(
                f"no judge {what}; use 'local', 'claude', 'entailment:NAME', 'local>claude', or in "
                "Python a judge: OpenAICompatibleJudge(...), EntailmentJudge(...) or your own "
                "LLMJudge"
            )
    return judges


ENV_MODELS = "RAGALIQ_MODELS"
"""A folder with a folder for each preset of `entailment:NAME`, for those named without a path."""


def entailment_judge() -> Any:
    """The class of small judges, loaded by its name: nothing here imports their annex."""
    return import_module("ragaliq.judges.small").EntailmentJudge


def assembled(judges: Sequence[LLMJudge], calibration: CalibrationSpec | None) -> LLMJudge:
    """One judge: the only one, or a cascade; with a calibration of the first."""
    if len(judges) > 1:
        from ragaliq.judges.cascade import CascadeJudge

        first, second, *more = judges
        return CascadeJudge(first, second, *more, calibration=calibration)
    if calibration is None:
        return judges[0]
    from ragaliq.judges.calibration import CalibratedJudge

    return CalibratedJudge(judges[0], calibration)


def stage_names(spec: str) -> list[str]:
    """The judges that a cascade such as `local>claude` names; anything else names one."""
    if spec == "cascade":
        spec = "local>claude"
    if ">" not in spec:
        return [spec]
    names = [name.strip() for name in spec.split(">")]
    if not all(names):
        raise ConfigurationError(
            f"no judge {shown_name(spec)}; a cascade is written such as 'local>claude'"
        )
    if len(set(names)) < len(names):
        raise ConfigurationError(f"the cascade {shown_name(spec)} names a judge twice")
    return names


_LONGEST_SHOWN = 40  # characters; keys are longer


def shown_name(spec: str) -> str:
    """What was given as a judge's name, for messages; a key in its place is not repeated."""
    is_key = len(spec) > _LONGEST_SHOWN or spec.startswith("sk-")
    return f"of {len(spec)} characters, which may be a key" if is_key else repr(spec)

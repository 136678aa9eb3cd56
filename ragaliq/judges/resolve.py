"""Resolution of a judge from `"local"`, `"claude"` or an object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ragaliq.core.annexes import annex
from ragaliq.core.checks import did_you_mean
from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.clients import looks_like_key

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
    is_asked: bool = True,
) -> LLMJudge:
    """The judge that `judge` names.

    Args:
        judge: `local`, `claude`, `claude:MODEL`, `openai:MODEL` (or `openai-compatible:MODEL`, as
            results name it), `entailment:NAME`, a cascade of them such as
            `local>openai:gpt-5-mini` (`cascade` for `local>claude`), or a judge, which is returned
            as it is.
        model: The model of `claude` or `openai`, where its name has none; Claude's is by default
            the one named in `DEFAULT_JUDGE_MODEL`.
        calibration: Calibration of the judge, or its file; for a named cascade, of its first judge.
        is_asked: Whether anything is sent to it; otherwise it needs no key.

    Raises:
        ConfigurationError: There is no such judge, its credentials are missing, or the calibration
            was made for another judge.
    """
    return assembled(named_judges(judge, model=model, is_asked=is_asked), calibration)


def named_judges(
    judge: JudgeSpec | str, *, model: str | None = None, is_asked: bool = True
) -> list[LLMJudge]:
    """The judges that `judge` names: those of a cascade, else one.

    A judge's SDK is loaded here, when the judge is built, and not with the first answer: a second
    of import would land in somebody's request.
    """
    if isinstance(judge, LLMJudge):
        return [judge]
    if not isinstance(judge, str):
        raise ConfigurationError(f"no judge {type(judge).__name__}; {_NAMES_ADVICE}")
    # A model is for the judge that has one.
    return [
        named_judge(name, model=model if name in _WITH_MODEL else None, is_asked=is_asked)
        for name in stage_names(judge)
    ]


_SERVED = ("openai", "openai-compatible")
_WITH_MODEL = ("claude", *_SERVED)


_NAMES_ADVICE = (
    "use local, claude, claude:MODEL, openai:MODEL, entailment:NAME, a cascade such as "
    "'local>openai:MODEL', or in Python a judge: OpenAICompatibleJudge(...), EntailmentJudge(...), "
    "your own LLMJudge"
)


def named_judge(
    name: str, *, model: str | None = None, base_url: str | None = None, is_asked: bool = True
) -> LLMJudge:
    """The judge with this name; `openai:gpt-5-mini` is `openai` with that model.

    Args:
        name: `local`, `claude`, `openai` or `entailment`, with or without a model.
        model: The model, where the name has none.
        base_url: The address of the chat-completions server; by default OPENAI_BASE_URL or OpenAI.
        is_asked: Whether anything is sent to it; otherwise it needs no key.

    Raises:
        ConfigurationError: No such judge, two models, or a setting that belongs to another judge.
    """
    kind, _, named = name.partition(":")
    if named and model is not None and kind in _WITH_MODEL:
        raise ConfigurationError(
            f"two models for one judge: {shown_name(name)} and {shown_name(model)}"
        )
    if base_url is not None and kind not in _SERVED:
        raise ConfigurationError("an address (--base-url) goes with judge openai")
    if kind == "entailment" and named:
        small: LLMJudge = entailment_judge().named(name, path=model)
        return small
    if name == "entailment" and model is not None:
        own: LLMJudge = entailment_judge()(model)
        return own
    model, key = named or model, None if is_asked else "not-needed"
    if kind == "claude":
        from ragaliq.judges.claude import DEFAULT_JUDGE_MODEL, ClaudeJudge

        return ClaudeJudge(model or DEFAULT_JUDGE_MODEL, api_key=key)
    if kind in _SERVED and model is not None:
        from ragaliq.judges.openai_compatible import OpenAICompatibleJudge

        return OpenAICompatibleJudge(model=model, base_url=base_url, api_key=key)
    if kind in (*_SERVED, "entailment"):
        what = "a model" if kind in _SERVED else "a model's folder or .onnx file, or a name"
        raise ConfigurationError(f"judge {kind} needs {what}: {kind}:..., or --model")
    if name == "local" and model is None:
        from ragaliq.judges.local import LocalJudge

        return LocalJudge()
    if name == "local":
        raise ConfigurationError("--model goes with judge claude, openai or entailment")
    hint = did_you_mean(name, ("local", "claude", "openai", "entailment"))
    raise ConfigurationError(f"no judge {shown_name(name)}{hint}; {_NAMES_ADVICE}")


ENV_MODELS = "RAGALIQ_MODELS"
"""A folder with a folder for each preset of `entailment:NAME`, for those named without a path."""


def entailment_judge() -> Any:
    """Class of small judges, imported by name: nothing here imports their annex."""
    return annex("judges.small").EntailmentJudge


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


_LONGEST_SHOWN = 60  # characters; a name is shorter


def shown_name(spec: str) -> str:
    """Name of a judge for messages; something that may be a key is not quoted."""
    is_key = len(spec) > _LONGEST_SHOWN or any(map(looks_like_key, re.split("[:>]", spec)))
    return f"of {len(spec)} characters, which may be a key" if is_key else repr(spec)

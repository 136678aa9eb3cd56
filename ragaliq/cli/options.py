"""Options that several commands take, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ragaliq.core.evaluator import Evaluator
from ragaliq.core.policy import ScoringPolicy
from ragaliq.datasets import CaseReader, read_cases
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators import get_evaluator
from ragaliq.evaluators.claim_based import ClaimEvaluator
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.cascade import CascadeJudge
from ragaliq.judges.resolve import cascade_names, resolve_judge

__all__ = [
    "BaseUrl",
    "CalibrationFile",
    "Data",
    "Fields",
    "Judge",
    "Metrics",
    "Model",
    "Policy",
    "PolicyName",
    "SkipBadRows",
    "Strategy",
    "StrategyName",
    "evaluators_of",
    "judge_of",
    "policy_of",
    "reader_of",
]


class PolicyName(StrEnum):
    """The named scoring policies."""

    RAGALIQ = "ragaliq"
    RAGAS = "ragas"
    RAG_EVALS = "rag_evals"
    PROMPTFOO = "promptfoo"
    LIVE = "live"


class StrategyName(StrEnum):
    """How a judge is asked."""

    BATCHED = "batched"
    PER_CLAIM = "per_claim"
    SINGLE_PASS = "single_pass"  # noqa: S105 - a strategy


Data = Annotated[
    Path,
    typer.Argument(
        help="Cases (.jsonl, .json, .csv, .tsv, .yaml, .parquet) or traces (OTLP, Phoenix's "
        "exports); also .gz."
    ),
]
Judge = Annotated[
    str,
    typer.Option(
        help="local (embedded, no key), claude, claude-batch (half price, in hours; needs "
        "RAGALIQ_BATCH_STORE), openai (any compatible server), entailment "
        "(a model of yours), or a cascade such as 'local>claude'."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="The judge's model; needed for openai and entailment (a folder or an .onnx file)."
    ),
]
BaseUrl = Annotated[str | None, typer.Option(help="Where an openai-compatible server listens.")]
CalibrationFile = Annotated[
    Path | None,
    typer.Option("--calibration", help="What `ragaliq calibrate` wrote for this judge."),
]
Metrics = Annotated[str, typer.Option(help="Comma separated; `ragaliq metrics` lists them.")]
Policy = Annotated[PolicyName, typer.Option(help="What to do in awkward cases.")]
Strategy = Annotated[
    StrategyName | None, typer.Option(help="How claims are checked; by default what suits a judge.")
]
Fields = Annotated[
    list[str] | None,
    typer.Option("--field", help="FIELD=NAME: what a field is called in this file; repeatable."),
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Leave unreadable rows out and count them.")
]


def judge_of(
    name: str,
    *,
    model: str | None = None,
    base_url: str | None = None,
    calibration: Path | None = None,
) -> LLMJudge:
    """The judge that the options name.

    Raises:
        ConfigurationError: There is none, it lacks a model, an address or a key, or the
            calibration was made for another judge.
    """
    stages = cascade_names(name)
    if stages is None:
        return resolve_judge(_plain_judge(name, model, base_url), calibration=calibration)
    if len([stage for stage in stages if stage != "local"]) > 1 and model is not None:
        raise ConfigurationError(f"--model: which judge of {name} is it for? Use the Python API")
    first, second, *more = (
        _plain_judge(
            stage,
            model if stage != "local" else None,
            base_url if stage == "openai" or "openai" not in stages else None,
        )
        for stage in stages
    )
    return CascadeJudge(first, second, *more, calibration=calibration)


def _plain_judge(name: str, model: str | None, base_url: str | None) -> LLMJudge:
    if name != "openai":
        if base_url is not None:
            raise ConfigurationError("--base-url goes with --judge openai")
        if name == "local" and model is not None:
            raise ConfigurationError("--model goes with --judge claude, openai or entailment")
        if name == "entailment":
            return _entailment_judge(model)
        return resolve_judge(name, model=model)
    if model is None or base_url is None:
        raise ConfigurationError("--judge openai needs --model and --base-url")
    from ragaliq.judges.openai_compatible import OpenAICompatibleJudge

    return OpenAICompatibleJudge(base_url=base_url, model=model)


def _entailment_judge(model: str | None) -> LLMJudge:
    if model is None:
        raise ConfigurationError("--judge entailment needs --model: a folder or an .onnx file")
    from ragaliq.judges.entailment import EntailmentJudge

    return EntailmentJudge(model)


def evaluators_of(
    metrics: str, *, policy: ScoringPolicy, strategy: StrategyName | None = None
) -> tuple[Evaluator, ...]:
    """The evaluators that the options name.

    Raises:
        ConfigurationError: One is unknown or asked for twice, or none is named.
    """
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    if not names:
        raise ConfigurationError("--metrics: name at least one; `ragaliq metrics` lists them")
    if len(set(names)) < len(names):
        raise ConfigurationError("--metrics: one is named twice")
    evaluators: list[Evaluator] = []
    for name in names:
        kind = get_evaluator(name)
        if strategy is not None and issubclass(kind, ClaimEvaluator):
            evaluators.append(kind(policy=policy, strategy=strategy.value))
        else:
            evaluators.append(kind(policy=policy))
    return tuple(evaluators)


def policy_of(name: PolicyName) -> ScoringPolicy:
    """The policy of this name."""
    policy: ScoringPolicy = getattr(ScoringPolicy, name.name)
    return policy


def reader_of(data: Path, fields: Sequence[str] | None, *, skip_bad_rows: bool) -> CaseReader:
    """The cases of a file.

    Raises:
        ConfigurationError: A `--field` is not FIELD=NAME, or is given twice.
        DatasetError: The file is missing or of no known format.
    """
    named: dict[str, str] = {}
    for option in fields or ():
        field, equals, name = option.partition("=")
        if not (equals and field and name):
            raise ConfigurationError(f"--field {option!r}: write it as FIELD=NAME")
        if field.strip() in named:
            raise ConfigurationError(
                f"--field {field.strip()}: given twice; columns that belong together are found "
                "when they are called context_1, context_2 and so on"
            )
        named[field.strip()] = name.strip()
    return read_cases(data, fields=named, on_error="skip" if skip_bad_rows else "raise")

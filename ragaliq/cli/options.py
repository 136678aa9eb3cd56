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
from ragaliq.evaluators.metrics import ClaimEvaluator

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
    str | None,
    typer.Option(
        help="local (embedded, no key), claude, openai (any compatible server), entailment "
        "(a model of yours), or a cascade such as 'local>claude'. By default what RAGALIQ_JUDGE "
        "says, else local (estimate: else claude)."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="The judge's model; needed for openai and entailment (a folder or an .onnx file). "
        "Claude's is by default what RAGALIQ_MODEL says."
    ),
]
BaseUrl = Annotated[str | None, typer.Option(help="Where an openai-compatible server listens.")]
CalibrationFile = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        help="What `ragaliq calibrate` wrote for this judge; by default RAGALIQ_CALIBRATION.",
    ),
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

"""Registry of metrics by name, for monitors, files and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import TypeVar

from ragaliq.core.checks import did_you_mean
from ragaliq.core.policy import ScoringPolicy
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.judges.base import LLMJudge

EvaluatorSpec = str | Evaluator | type[Evaluator]
"""A registered name, an evaluator, or an evaluator class to build with its defaults."""

E = TypeVar("E", bound=type[Evaluator])

_REGISTRY: dict[str, type[Evaluator]] = {}

# Names of the same metrics in Ragas and DeepEval, for hints in messages.
_PEERS = {
    "answer_relevancy": "relevance",
    "answer_relevance": "relevance",
    "response_relevancy": "relevance",
    "groundedness": "faithfulness",
    "contextual_precision": "context_precision",
    "contextual_recall": "context_recall",
}


def register_evaluator(name: str) -> Callable[[E], E]:
    """Class decorator that registers a metric under `name`.

    Raises:
        ConfigurationError: The name is taken by another class.
    """

    def register(evaluator: E) -> E:
        known = _REGISTRY.get(name)
        # Reloading a module in a notebook defines the same class again, which replaces the old one.
        if known is not None and known.__qualname__ != evaluator.__qualname__:
            raise ConfigurationError(
                f"evaluator name {name!r} is already taken by {known.__qualname__}"
            )
        evaluator.name = name
        _REGISTRY[name] = evaluator
        return evaluator

    return register


def get_evaluator(name: str) -> type[Evaluator]:
    """Metric class registered under `name`.

    Raises:
        ConfigurationError: There is no such metric; the message lists the known ones.
    """
    try:
        return _REGISTRY[name]
    except KeyError:
        known = list_evaluators()
        hint = did_you_mean(_PEERS.get(name.lower(), name), known)
        raise ConfigurationError(
            f"no metric {name!r}{hint}; there are: {', '.join(known)}"
        ) from None


def list_evaluators() -> list[str]:
    """Registered names, sorted."""
    return sorted(_REGISTRY)


def resolve_evaluators(
    specs: Iterable[EvaluatorSpec] | None,
    *,
    judge: LLMJudge | None = None,
    policy: ScoringPolicy | None = None,
) -> tuple[Evaluator, ...]:
    """Build the metrics that `specs` name, in order; a single name will do.

    Args:
        specs: Names, classes or metrics; None for the judge's `default_metrics`.
        judge: The judge; needed if `specs` is None.
        policy: For metrics without their own policy.

    Raises:
        ConfigurationError: An unknown name, something that is not a metric, none at all, or two
            metrics with one name (their results could not be distinguished).
    """
    if specs is None:
        # A MagicMock(spec=LLMJudge) answers any attribute with another mock.
        usual = () if judge is None else judge.default_metrics
        specs = usual if isinstance(usual, tuple) else LLMJudge.default_metrics
    evaluators: dict[str, Evaluator] = {}
    for spec in [specs] if isinstance(specs, str) else specs:
        found: object = get_evaluator(spec) if isinstance(spec, str) else spec
        evaluator = found() if isinstance(found, type) and issubclass(found, Evaluator) else found
        if not isinstance(evaluator, Evaluator):
            raise ConfigurationError(
                f"expected an evaluator, its class or its name, got {type(spec).__name__}"
            )
        if evaluator.name in evaluators:
            raise ConfigurationError(f"evaluator asked for twice: {evaluator.name}")
        # Its own policy is set on the instance, not on its class.
        if policy is not None and "policy" not in vars(evaluator):
            evaluator = copy(evaluator)  # the caller may use it elsewhere with another policy
            evaluator.policy = policy
        evaluators[evaluator.name] = evaluator
    if not evaluators:
        raise ConfigurationError("at least one evaluator is needed")
    return tuple(evaluators.values())

"""Evaluators by name, so that a monitor, a file or a command line can ask for them."""

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

# What Ragas and DeepEval call the same, for a hint only.
_PEERS = {
    "answer_relevancy": "relevance",
    "answer_relevance": "relevance",
    "response_relevancy": "relevance",
    "groundedness": "faithfulness",
    "contextual_precision": "context_precision",
    "contextual_recall": "context_recall",
}


def register_evaluator(name: str) -> Callable[[E], E]:
    """Class decorator that makes an evaluator available under `name`.

    Raises:
        ConfigurationError: The name is taken by another class.
    """

    def register(evaluator: E) -> E:
        known = _REGISTRY.get(name)
        # Reloading a module in a notebook defines the same class again: that replaces the old one.
        if known is not None and known.__qualname__ != evaluator.__qualname__:
            raise ConfigurationError(
                f"evaluator name {name!r} is already taken by {known.__qualname__}"
            )
        evaluator.name = name
        _REGISTRY[name] = evaluator
        return evaluator

    return register


def get_evaluator(name: str) -> type[Evaluator]:
    """The evaluator class registered under `name`.

    Raises:
        ConfigurationError: No such evaluator; the message lists those there are.
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
    """The registered names, sorted."""
    return sorted(_REGISTRY)


def resolve_evaluators(
    specs: Iterable[EvaluatorSpec] | None,
    *,
    judge: LLMJudge | None = None,
    policy: ScoringPolicy | None = None,
) -> tuple[Evaluator, ...]:
    """Build the evaluators that `specs` name, in order; a single name will do.

    Args:
        specs: Names, classes or evaluators; None for the judge's `default_metrics`.
        judge: Who decides; needed where `specs` is None.
        policy: For those without a policy of their own.

    Raises:
        ConfigurationError: An unknown name, something that is not an evaluator, none at all, or two
            evaluators with one name (their results could not be distinguished).
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
        # One of its own is set on the evaluator itself, and not on its class.
        if policy is not None and "policy" not in vars(evaluator):
            evaluator = copy(evaluator)  # the caller may use it elsewhere with another policy
            evaluator.policy = policy
        evaluators[evaluator.name] = evaluator
    if not evaluators:
        raise ConfigurationError("at least one evaluator is needed")
    return tuple(evaluators.values())

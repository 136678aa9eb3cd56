"""Evaluators by name, so that a monitor, a file or a command line can ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ragaliq.core.evaluator import Evaluator
from ragaliq.errors import ConfigurationError

__all__ = [
    "EvaluatorSpec",
    "get_evaluator",
    "list_evaluators",
    "register_evaluator",
    "resolve_evaluators",
]

EvaluatorSpec = str | Evaluator | type[Evaluator]
"""A registered name, an evaluator, or an evaluator class to build with its defaults."""

E = TypeVar("E", bound=type[Evaluator])

_REGISTRY: dict[str, type[Evaluator]] = {}


def register_evaluator(name: str) -> Callable[[E], E]:
    """Class decorator that makes an evaluator available under `name`.

    Raises:
        ConfigurationError: The name is taken by another class.
    """

    def register(evaluator: E) -> E:
        known = _REGISTRY.get(name)
        # Reloading a module in a notebook defines the same class anew: that replaces the old one.
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
        known = ", ".join(list_evaluators())
        raise ConfigurationError(f"no evaluator named {name!r}; there are: {known}") from None


def list_evaluators() -> list[str]:
    """The registered names, sorted."""
    return sorted(_REGISTRY)


def resolve_evaluators(specs: Iterable[EvaluatorSpec]) -> tuple[Evaluator, ...]:
    """Build the evaluators that `specs` name, in order; one name stands for itself alone.

    Raises:
        ConfigurationError: An unknown name, something that is no evaluator, none at all, or two
            evaluators with one name (their results could not be told apart).
    """
    if isinstance(specs, str):
        specs = [specs]
    evaluators = tuple(_resolve(spec) for spec in specs)
    if not evaluators:
        raise ConfigurationError("at least one evaluator is needed")
    names = [evaluator.name for evaluator in evaluators]
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        raise ConfigurationError(f"evaluator asked for twice: {', '.join(doubles)}")
    return evaluators


def _resolve(spec: object) -> Evaluator:
    if isinstance(spec, Evaluator):
        return spec
    if isinstance(spec, type) and issubclass(spec, Evaluator):
        return spec()
    if isinstance(spec, str):
        return get_evaluator(spec)()
    raise ConfigurationError(
        f"expected an evaluator, its class or its name, got {type(spec).__name__}"
    )

"""What a model must be able to do, and how its outputs become probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ragaliq.errors import JudgeResponseError
from ragaliq.judges.entailment.labels import Labels

__all__ = ["FunctionScorer", "Pair", "PairScorer", "Support", "probabilities"]

Pair = tuple[str, str]
"""What is given, and what may follow from it."""


class Support(NamedTuple):
    """What a model makes of a pair.

    Attributes:
        supported: The chance that the claim follows, 0 to 1.
        contradicted: The chance that its opposite does; 0 of a model that cannot tell.
    """

    supported: float
    contradicted: float = 0.0


class PairScorer(Protocol):
    """A model behind an `EntailmentJudge`.

    Attributes:
        name: Of the model; never a path.
        max_tokens: Tokens a pair may have; None for no limit.
        own_tokens: Tokens the model adds to a pair.
    """

    name: str
    max_tokens: int | None
    own_tokens: int

    def count(self, text: str) -> int:
        """Tokens of a text."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[Support]:
        """Score pairs; called on one thread at a time."""
        ...

    def fingerprint(self) -> str:
        """Changes with the model's parameters."""
        ...


class FunctionScorer:
    """Any function from pairs to chances of support.

    Args:
        function: Gets (context, claim) pairs; returns the chance of support for each.
        max_tokens: Words a pair may have; None for no limit.
    """

    own_tokens = 0

    def __init__(
        self, function: Callable[[list[Pair]], Sequence[float]], *, max_tokens: int | None
    ) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.max_tokens = max_tokens

    def count(self, text: str) -> int:
        """Words of a text: what a token is, only the function knows."""
        return len(text.split())

    def score(self, pairs: Sequence[Pair]) -> list[Support]:
        """Call the function."""
        found = [float(value) for value in self._function(list(pairs))]
        if len(found) != len(pairs):
            raise JudgeResponseError(f"{self.name} gave {len(found)} scores for {len(pairs)} pairs")
        return [Support(_share(value, self.name)) for value in found]

    def fingerprint(self) -> str:
        """The function's name: what is behind it cannot be seen."""
        return self.name


def probabilities(logits: Sequence[float], labels: Labels, model: str) -> Support:
    """Turn a model's outputs for one pair into chances: softmax, or sigmoid of a single one.

    Raises:
        JudgeResponseError: An output is no finite number.
    """
    if not all(math.isfinite(value) for value in logits):
        raise JudgeResponseError(f"{model} gave an output that is no number")
    if len(labels) == 1:
        return Support(1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, logits[0])))))
    top = max(logits)
    weights = [math.exp(value - top) for value in logits]
    shares = dict(zip(labels, (weight / math.fsum(weights) for weight in weights), strict=True))
    return Support(shares["SUPPORTED"], shares.get("CONTRADICTED", 0.0))


def _share(value: float, name: str) -> float:
    if not 0.0 <= value <= 1.0:  # nor NaN
        raise JudgeResponseError(f"{name} gave a score outside 0 to 1")
    return value

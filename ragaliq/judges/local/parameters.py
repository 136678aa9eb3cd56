"""What training left behind: word frequencies and the weights of the features."""

from __future__ import annotations

import gzip
import json
import math
from functools import cache
from importlib import resources
from typing import NamedTuple

from ragaliq.judges.local.features import Features
from ragaliq.judges.local.frequencies import WordFrequencies

__all__ = [
    "FIGURES_FILE",
    "FOLDER",
    "MODEL_FILE",
    "WORDS_FILE",
    "SupportModel",
    "load_frequencies",
    "load_model",
]

WORDS_FILE = "words.json.gz"
MODEL_FILE = "model.json"
FIGURES_FILE = "figures.json"
FOLDER = "parameters"


class SupportModel(NamedTuple):
    """A logistic model: the share of support a claim's features speak for.

    Attributes:
        intercept: Such that 0.5 is the threshold.
        weights: One for each feature.
    """

    intercept: float
    weights: Features

    def support(self, features: Features) -> float:
        """The support score, 0 to 1; 0.5 and more counts as supported. Not a probability."""
        total = self.intercept + sum(
            weight * value for weight, value in zip(self.weights, features, strict=True)
        )
        return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, total))))


@cache
def load_frequencies() -> WordFrequencies:
    """The word frequencies shipped with the package, read once."""
    packed = (resources.files(__package__) / FOLDER / WORDS_FILE).read_bytes()
    stored = json.loads(gzip.decompress(packed))
    counts = {
        word: int(count) for count, words in stored["words"].items() for word in words.split()
    }
    return WordFrequencies(stored["documents"], counts, stored["names"].split())


@cache
def load_model() -> SupportModel:
    """The weights shipped with the package, read once."""
    stored = json.loads((resources.files(__package__) / FOLDER / MODEL_FILE).read_text("utf-8"))
    return SupportModel(stored["intercept"], Features(**stored["weights"]))

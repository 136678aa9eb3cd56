"""Models of an `EntailmentJudge`: input formats, and the meaning of outputs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, cast

from ragaliq.core.results import Verdict
from ragaliq.errors import ConfigurationError, JudgeResponseError
from ragaliq.judges.small.presets import Labels, Preset, filled

TextPair = tuple[str, str]
"""What is given, and what may follow from it."""


class Support(NamedTuple):
    """Scores of a model for a pair of context and claim.

    Attributes:
        supported: The chance that the claim follows, 0 to 1.
        contradicted: The chance that its opposite does; 0 of a model that cannot tell.
    """

    supported: float
    contradicted: float = 0.0


class ClaimScorer(Protocol):
    """Scorer of pairs of a context and a claim.

    Attributes:
        name: Of the model; never a path.
        max_tokens: Tokens a pair may have; None for no limit.
    """

    name: str
    max_tokens: int | None

    def count(self, text: str) -> int:
        """Tokens of a text."""

    def taken(self, claim: str) -> int:
        """Tokens that a claim takes with all that the model adds to it."""

    def score(self, pairs: Sequence[TextPair]) -> list[Support]:
        """Score pairs."""

    def fingerprint(self) -> str:
        """Fingerprint of the model's parameters and of its input format."""


# What the outputs mean; refused where that would be a guess.

_MEANINGS: Mapping[Verdict, frozenset[str]] = {
    "SUPPORTED": frozenset(
        "consistent entail entailed entailment entails factual faithful grounded support supported "
        "supports".split()
    ),
    "CONTRADICTED": frozenset(
        "contradict contradicted contradiction contradicts refute refuted refutes".split()
    ),
    "NOT_ENOUGH_INFO": frozenset(
        "hallucinated hallucination inconsistent nei neutral notconsistent notentailed "
        "notentailment notenoughinfo notenoughinformation notfaithful notfactual notgrounded "
        "notsupported unfaithful ungrounded unsupported".split()
    ),
}
_ADVICE = (
    'pass labels= with a verdict for each output in order, such as labels=("CONTRADICTED", '
    '"NOT_ENOUGH_INFO", "SUPPORTED"); the model\'s card says which is which'
)


def labels_from_config(id2label: Mapping[Any, object], *, model: str) -> Labels:
    """Read the names a model gives its outputs, `id2label` of a Hugging Face configuration.

    Raises:
        ConfigurationError: A name says nothing, such as `LABEL_0`, or the set of names is unknown.
    """
    names = {int(number): str(name) for number, name in id2label.items()}
    if not names:
        raise ConfigurationError(f"{model} does not name its outputs; {_ADVICE}")
    if sorted(names) != list(range(len(names))):
        raise ConfigurationError(f"{model} numbers its outputs with gaps; {_ADVICE}")
    labels: list[Verdict] = []
    for i in range(len(names)):
        plain = re.sub(r"[^a-z]", "", names[i].lower())
        meaning = next((verdict for verdict, words in _MEANINGS.items() if plain in words), None)
        if meaning is None:
            raise ConfigurationError(
                f"{model} calls an output {names[i]!r}, which says nothing; {_ADVICE}"
            )
        labels.append(meaning)
    return _checked(labels, model)


def labels_from_user(labels: Sequence[str], *, outputs: int | None, model: str) -> Labels:
    """Check the meanings a user gives; `outputs` is None where their number is not known yet.

    Raises:
        ConfigurationError: They are not verdicts, none is SUPPORTED, or their number is wrong.
    """
    if isinstance(labels, str):
        raise ConfigurationError(f"EntailmentJudge: labels must be a sequence; {_ADVICE}")
    for label in labels:
        if label not in _MEANINGS:
            raise ConfigurationError(
                f"EntailmentJudge: {label!r} is none of {', '.join(_MEANINGS)}; {_ADVICE}"
            )
    if outputs is not None and len(labels) != outputs:
        raise ConfigurationError(
            f"EntailmentJudge: {len(labels)} labels were given and {model} has {outputs} outputs"
        )
    return _checked(cast("Sequence[Verdict]", labels), model)


def _checked(labels: Sequence[Verdict], model: str) -> Labels:
    if labels.count("SUPPORTED") != 1 or labels.count("CONTRADICTED") > 1:
        raise ConfigurationError(
            f"one output of {model} must mean SUPPORTED and at most one CONTRADICTED, got "
            f"{', '.join(labels)}; {_ADVICE}"
        )
    return tuple(labels)


def _chances(logits: Sequence[float], labels: Labels, model: str) -> Support:
    """A pair's outputs as chances: softmax, or sigmoid of a single one."""
    if not all(math.isfinite(value) for value in logits):
        raise JudgeResponseError(f"{model} gave an output that is not a number")
    if len(labels) == 1:
        return Support(1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, logits[0])))))
    top = max(logits)
    weights = [math.exp(value - top) for value in logits]
    total = math.fsum(weights)
    by_label = list(zip(labels, weights, strict=True))
    return Support(
        math.fsum(weight for label, weight in by_label if label == "SUPPORTED") / total,
        math.fsum(weight for label, weight in by_label if label == "CONTRADICTED") / total,
    )


# Any function.


class FunctionScorer:
    """Any function from pairs to chances of support.

    Args:
        function: Gets (context, claim) pairs; returns the chance of support for each.
        max_tokens: Words a pair may have; None for no limit.
    """

    def __init__(
        self, function: Callable[[list[TextPair]], Sequence[float]], *, max_tokens: int | None
    ) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.max_tokens = max_tokens

    def count(self, text: str) -> int:
        """Words of a text: what a token is, only the function knows."""
        return len(text.split())

    taken = count

    def score(self, pairs: Sequence[TextPair]) -> list[Support]:
        """Call the function."""
        found = [float(value) for value in self._function(list(pairs))]
        if len(found) != len(pairs):
            raise JudgeResponseError(f"{self.name} gave {len(found)} scores for {len(pairs)} pairs")
        if not all(0.0 <= value <= 1.0 for value in found):  # nor NaN
            raise JudgeResponseError(f"{self.name} gave a score outside 0 to 1")
        return [Support(value) for value in found]

    def fingerprint(self) -> str:
        """The function's name: what is behind it cannot be seen."""
        return self.name


# A classifier: its tokenizer, how it is run, and what its outputs mean.


RunModel = Callable[[list[list[int]], list[list[int]], list[list[int]]], list[Any]]
"""From ids, mask and types of a batch to each input's logits."""


@dataclass(kw_only=True)
class ModelScorer:
    """Scores pairs with a model that was loaded and checked.

    Attributes:
        name: Of the model.
        preset: How it is asked.
        tokenizer: A `tokenizers.Tokenizer`.
        run: Runs a batch.
        labels: A verdict for each output.
        max_tokens: What it reads at once.
        pad: The id that fills up shorter inputs.
        digest: Of its weights; takes a moment.
        batch_size: Pairs that are run at once.
    """

    name: str
    preset: Preset
    tokenizer: Any
    run: RunModel
    labels: Labels
    max_tokens: int | None
    pad: int
    digest: Callable[[], str]
    batch_size: int

    def __post_init__(self) -> None:
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        added = self.tokenizer.get_added_tokens_decoder().values()
        self._specials = [token.content for token in added if token.special]

    def count(self, text: str) -> int:
        """Tokens of a text."""
        encoded = self.tokenizer.encode(self.without_specials(text), add_special_tokens=False)
        return len(encoded.ids)

    def taken(self, claim: str) -> int:
        """Tokens of the input without a context."""
        return len(self.encode([("", claim)])[0].ids)

    def without_specials(self, text: str) -> str:
        """The text without the model's own control words, which the tokenizer would obey."""
        for special in self._specials:
            if special in text:
                text = text.replace(special, f"{special[0]} {special[1:]}")
        return text

    def encode(self, pairs: Sequence[TextPair]) -> list[Any]:
        """The pairs as the model reads them."""
        template = self.preset.template
        inputs: list[Any] = [
            (self.without_specials(context), self.without_specials(claim))
            for context, claim in pairs
        ]
        if template is not None:
            inputs = [filled(template, *pair) for pair in inputs]
        return list(self.tokenizer.encode_batch(inputs))

    def score(self, pairs: Sequence[TextPair]) -> list[Support]:
        """Score pairs, those of similar length together."""
        rows = self.logits(self.encode(pairs))
        return [_chances(row, self.labels, self.name) for row in rows]

    def logits(self, encoded: Sequence[Any]) -> list[Any]:
        """The outputs for each input, in the order of the inputs."""
        found: list[Any] = [None] * len(encoded)
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i].ids))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            width = max(len(encoded[i].ids) for i in batch)
            gaps = [width - len(encoded[i].ids) for i in batch]
            rows = self.run(
                [encoded[i].ids + [self.pad] * gap for i, gap in zip(batch, gaps, strict=True)],
                [[1] * (width - gap) + [0] * gap for gap in gaps],
                [encoded[i].type_ids + [0] * gap for i, gap in zip(batch, gaps, strict=True)],
            )
            for i, row in zip(batch, rows, strict=True):
                found[i] = row
        return found

    def fingerprint(self) -> str:
        """A hash of the weights and of how they are asked."""
        asked = f"{self.preset.template} {self.labels} {self.max_tokens}"
        return f"{blake2b(asked.encode(), digest_size=4).hexdigest()}{self.digest()}"

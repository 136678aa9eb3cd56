"""What a model's output numbers mean; refused where that would be a guess."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ragaliq.core.results import Verdict
from ragaliq.errors import ConfigurationError

__all__ = ["Labels", "labels_from_config", "labels_from_user"]

Labels = tuple[Verdict, ...]
"""A verdict for each output, in order; of a single output, SUPPORTED: its sigmoid is the chance."""

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


def labels_from_config(names: Mapping[int, str] | None, *, model: str) -> Labels:
    """Read the names a model gives its outputs.

    Args:
        names: By the number of the output, as `id2label` of a Hugging Face configuration.
        model: For the message.

    Raises:
        ConfigurationError: A name says nothing, such as `LABEL_0`, or the names are no such set.
    """
    if not names:
        raise ConfigurationError(f"{model} does not name its outputs; {_ADVICE}")
    if sorted(names) != list(range(len(names))):
        raise ConfigurationError(f"{model} numbers its outputs with gaps; {_ADVICE}")
    return _checked([_meaning(names[i], model) for i in range(len(names))], model)


def labels_from_user(labels: Sequence[str], *, outputs: int | None, model: str) -> Labels:
    """Check the meanings a user gives.

    Args:
        labels: A verdict for each output, in order.
        outputs: How many outputs the model has; None where that is not known yet.
        model: For the message.

    Raises:
        ConfigurationError: They are no verdicts, none is SUPPORTED, or their number is wrong.
    """
    if isinstance(labels, str):
        raise ConfigurationError(f"EntailmentJudge: labels must be a sequence; {_ADVICE}")
    known: list[Verdict] = []
    for label in labels:
        meaning = next((verdict for verdict in _MEANINGS if verdict == label), None)
        if meaning is None:
            raise ConfigurationError(
                f"EntailmentJudge: {label!r} is none of {', '.join(_MEANINGS)}; {_ADVICE}"
            )
        known.append(meaning)
    if outputs is not None and len(known) != outputs:
        raise ConfigurationError(
            f"EntailmentJudge: {len(known)} labels were given and {model} has {outputs} outputs"
        )
    return _checked(known, model)


def _meaning(name: str, model: str) -> Verdict:
    plain = re.sub(r"[^a-z]", "", str(name).lower())
    for verdict, words in _MEANINGS.items():
        if plain in words:
            return verdict
    raise ConfigurationError(f"{model} calls an output {name!r}, which says nothing; {_ADVICE}")


def _checked(labels: Sequence[Verdict], model: str) -> Labels:
    if labels.count("SUPPORTED") != 1 or labels.count("CONTRADICTED") > 1:
        raise ConfigurationError(
            f"one output of {model} must mean SUPPORTED and at most one CONTRADICTED, got "
            f"{', '.join(labels)}; {_ADVICE}"
        )
    return tuple(labels)

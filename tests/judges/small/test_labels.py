"""What a model's outputs mean is read from its configuration or told, and never guessed."""

import pytest

from ragaliq import ConfigurationError
from ragaliq.judges.small.models import labels_from_config, labels_from_user

S, C, N = "SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], (C, N, S)),
        (["not_entailment", "entailment"], (N, S)),
        (["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], (S, C, N)),
        (["hallucinated", "consistent"], (N, S)),
        (["consistent"], (S,)),
    ],
)
def test_usual_names_are_understood(names, labels):
    assert labels_from_config(dict(enumerate(names)), model="m") == labels


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ({0: "LABEL_0", 1: "LABEL_1"}, "LABEL_0"),
        ({0: "negative", 1: "positive"}, "negative"),
        ({0: "neutral", 1: "contradiction"}, "must mean SUPPORTED"),
        ({0: "entailment", 2: "neutral"}, "gaps"),
        ({}, "does not name"),
    ],
)
def test_names_that_say_nothing_are_refused_with_advice(names, says):
    with pytest.raises(ConfigurationError, match=says) as raised:
        labels_from_config(names, model="m")
    assert "labels=" in str(raised.value)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ("SUPPORTED", "sequence"),
        (["yes", "no"], "'yes' is none of"),
        ([N, S], "2 labels .* 3 outputs"),
        ([S, S, N], "must mean SUPPORTED"),
    ],
)
def test_what_a_user_says_they_mean_is_checked(labels, says):
    with pytest.raises(ConfigurationError, match=says):
        labels_from_user(labels, outputs=3, model="m")
    assert labels_from_user([N, S], outputs=2, model="m") == (N, S)

"""A negation on one side only contradicts; one that denies something else does not."""

from __future__ import annotations

import pytest

from ragaliq.judges.local.verdict import Verifier

OPPOSED = [
    ("It has a workshop.", "It has no workshop."),
    ("It has no workshop.", "It has a workshop."),
    ("The museum has a workshop.", "The museum has no workshop."),
    ("The house comes with a garage.", "The house comes without a garage."),
    ("The hotel has a sauna.", "The hotel has a pool but no sauna."),
    ("Breakfast is included.", "Breakfast is not included."),
    ("Breakfast isn't included.", "Breakfast is included."),
    ("The fee is refundable.", "The fee is non-refundable."),
    ("The device is not waterproof.", "The device is waterproof up to 10 m."),
    ("Das Haus hat einen Garten.", "Das Haus hat keinen Garten."),
    ("Das Haus hat keinen Garten.", "Das Haus hat einen Garten."),
    ("Le musée est ouvert le lundi.", "Le musée n'est pas ouvert le lundi."),
    ("El hotel tiene piscina.", "El hotel no tiene piscina."),
    ("L'hotel ha una piscina.", "L'hotel non ha una piscina."),
    ("O hotel tem piscina.", "O hotel não tem piscina."),
    ("Het hotel heeft een zwembad.", "Het hotel heeft geen zwembad."),
    ("The visitors paid for the tour.", "The visitors paid nothing for the tour."),
    ("The visitors paid nothing for the tour.", "The visitors paid for the tour."),
    ("He noted the price.", "He did not note the price."),
    (
        "The goods left the warehouse on Monday.",
        "Nobody says the goods left the warehouse on Monday.",
    ),
    ("Das Museum ist niemals geschlossen.", "Das Museum ist geschlossen."),
]
AGREEING = [
    ("The hotel has a pool.", "The hotel has a pool but no sauna."),
    ("The hotel has a pool.", "The hotel has no sauna but a pool."),
    ("The device is waterproof.", "The device isn't dustproof, but it is waterproof."),
    ("There is no charge for parking.", "Parking is free; there is no charge."),
    ("Sale items cannot be refunded.", "Sale items can't be refunded."),
    ("The tour takes two hours.", "The tour takes no more than two hours."),
    ("No, the tour takes two hours.", "The tour takes two hours."),
    ("Not really. The tour takes two hours.", "The tour takes two hours."),
    (
        "Winter is the coldest season in temperate zones.",
        "Winter is the coldest season in temperate zones (winter does not occur in the tropics).",
    ),
    ("The desert is sand.", "The desert is nothing but sand."),
    *(
        (f"{opening} refunds are paid within five days.", "Refunds are paid within five days.")
        for opening in (
            "It is important to note that",
            "Note that",
            "As noted,",
            "It is worth noting that",
            "The notes say that",
        )
    ),
    ("Refunds are paid within five days.", "Please note that refunds are paid within five days."),
]


@pytest.mark.parametrize(("claim", "context"), OPPOSED)
def test_a_negation_on_one_side_only_contradicts(claim, context):
    decision = Verifier([context]).decide(claim)
    assert decision.verdict == "CONTRADICTED"
    assert decision.reason == (
        f'The claim and the closest sentence differ in negation: "{context}".'
    )
    assert decision.evidence == context


@pytest.mark.parametrize(("claim", "context"), AGREEING)
def test_a_negation_of_something_else_leaves_the_claim_supported(claim, context):
    assert Verifier([context]).decide(claim).verdict == "SUPPORTED"


@pytest.mark.parametrize(
    ("claim", "context"),
    [
        ("He did not win the cup in 1998.", "He failed to win the cup in 1998."),
        ("He failed to win the cup in 1998.", "He did not win the cup in 1998."),
    ],
)
def test_a_word_that_denies_without_a_negation_is_no_sign(claim, context):
    assert Verifier([context]).decide(claim).verdict != "CONTRADICTED"

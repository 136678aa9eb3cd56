"""Numbers, units, times and dates agree in any notation, and differ where they differ."""

from __future__ import annotations

import pytest

from ragaliq.judges.local.verdict import Verifier

SAME = [
    ("The bridge is 1 200 metres long.", "The bridge is 1,200 metres long."),
    ("The bridge is 1,200 metres long.", "The bridge is 1200 m long."),
    ("Die Gebühr beträgt 1.000,50 Euro.", "Die Gebühr beträgt 1 000,50 €."),
    ("The value is 1.5 metres.", "The value is 1,5 metres."),
    ("It costs 5 percent of revenue.", "It costs 5% of revenue."),
    ("It costs 5 dollars.", "It costs $5."),
    ("It costs $5M a year.", "It costs 5 million dollars a year."),
    ("The price is three and a half million.", "The price is 3.5 million."),
    ("It weighs 5 kilograms.", "It weighs 5kg."),
    ("It is 12 kilometres away.", "It is 12 km away."),
    ("The shop opens at 3 pm.", "The shop opens at 15:00."),
    ("The shop opens at 3:30 p.m. daily.", "The shop opens at 15:30 daily."),
    ("The launch was on 12 March 2021.", "The launch was on 2021-03-12."),
    ("The launch was on March 12, 2021.", "The launch was on 12.03.2021."),
    ("The launch was on March 12, 2021.", "The launch was on 12/03/2021."),
    ("The range is 5-10 days.", "The range is 5 to 10 days."),
    ("The population is ٢٠٠٠.", "The population is 2000."),
]
DIFFERENT = [
    ("Refunds take five weeks.", "Refunds take five days.", "five weeks"),
    ("Refunds are paid in 5 business weeks.", "Refunds are paid in 5 business days.", "5 weeks"),
    ("The bridge is 10 miles long and wide.", "The bridge is 10 km long and wide.", "10 miles"),
    ("The bridge is 1 300 metres long.", "The bridge is 1,200 metres long.", "1 300"),
    ("The ticket costs 7 dollars.", "The ticket costs $5.", "7"),
    ("The shop opens at 15:30 on Mondays.", "The shop opens at 16:30 on Mondays.", "15:30"),
    ("The launch was on 2021-03-13.", "The launch was on March 12, 2021.", "13"),
]


@pytest.mark.parametrize(("claim", "context"), SAME)
def test_the_same_amount_in_another_notation_is_supported(claim, context):
    assert Verifier([context]).decide(claim).verdict == "SUPPORTED"


@pytest.mark.parametrize(("claim", "context", "named"), DIFFERENT)
def test_another_amount_contradicts_and_is_named(claim, context, named):
    decision = Verifier([context]).decide(claim)
    assert decision.verdict == "CONTRADICTED"
    assert named in decision.reason


@pytest.mark.parametrize(
    ("claim", "context"),
    [
        (
            "The trial is 30 days, the plan a year.",
            "The plan runs a year, the trial 30 days.",
        ),
        ("Five days or five weeks are possible.", "Five weeks or five days are possible."),
    ],
)
def test_a_unit_the_context_has_as_well_is_no_sign(claim, context):
    assert Verifier([context]).decide(claim).verdict == "SUPPORTED"


def test_the_reason_lists_missing_numbers_names_and_rare_words():
    decision = Verifier(["The tower stands in Paris."]).decide(
        "The tower in Vilnius weighs 7,300 tonnes of wrought iron."
    )
    assert decision.verdict == "NOT_ENOUGH_INFO"
    for word in ("7,300", "Vilnius", "wrought"):
        assert word in decision.reason

"""Pairs that differ in one thing: the same claim, another number, a denial, something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragaliq.judges.local.verdict import Verifier

KINDS = ("supported", "another number", "denied", "not covered")
WANTED = dict(
    zip(KINDS, ("SUPPORTED", "CONTRADICTED", "CONTRADICTED", "NOT_ENOUGH_INFO"), strict=True)
)
LINES = Path(__file__).with_name("minimal_pairs.txt").read_text("utf-8").splitlines()
ROWS = [[cell.strip() for cell in line.split("|")] for line in LINES if line[:1] != "#"]
PAIRS = [
    (row[0], kind, row[1], claim)
    for row in ROWS
    for kind, claim in zip(KINDS, row[2:], strict=True)
]


def test_there_are_enough_of_them():
    assert len(PAIRS) >= 200
    assert len({language for language, *_ in PAIRS}) >= 8


@pytest.mark.parametrize(("language", "kind", "context", "claim"), PAIRS)
def test_what_differs_decides(language, kind, context, claim):
    decision = Verifier([context, "Our office is closed on 9 May and 3 June."]).decide(claim)
    assert decision.verdict == WANTED[kind], decision.reason


@pytest.mark.parametrize(
    ("claim", "context", "verdict"),
    [
        # A number or a name holds in the sentence that covers the claim, not in another one.
        ("Refunds take nine working days.", "Refunds take five working days.", "CONTRADICTED"),
        ("Anna leads sales in Berlin.", "Paul leads sales in Berlin.", "CONTRADICTED"),
        ("Tickets cost 1,056 euros.", "Tickets cost 1, 056 euros.", "SUPPORTED"),
        ("Revenue was 1.2bn dollars.", "Revenue was $1.18 billion.", "NOT_ENOUGH_INFO"),
        ("More than 100 people came to the fair.", "116 people came to the fair.", "SUPPORTED"),
        ("Take bus No. 5 to the harbour.", "Take bus 5 to the harbour.", "SUPPORTED"),
        ("The speaker was none other than Ada Keller.", "The speaker was Ada Keller.", "SUPPORTED"),
        ("It is a sin to waste water.", "Wasting water is a sin.", "SUPPORTED"),
    ],
)
def test_pairs_that_were_wrong_once(claim, context, verdict):
    others = ["The shop opens at nine.", "Anna leads support in Rome."]
    decision = Verifier([context, *others]).decide(claim)
    assert decision.verdict == verdict, decision.reason

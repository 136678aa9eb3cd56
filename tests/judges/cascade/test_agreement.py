"""How often the judges agree, and the warning when that drops."""

import logging

import pytest

from ragaliq import CascadeJudge
from ragaliq.testing import ScriptedJudge

CONTEXT = ["A context."]


@pytest.fixture
def audit(screen, calibration):
    """Audits further claims of a cascade, with which the better judge agrees or not."""
    other = ScriptedJudge(verdicts=lambda claim, context: other.says)
    other.name = "better"
    judge = CascadeJudge(screen, other, escalate=0.0, audit=1.0, calibration=calibration)

    async def audit(times, *, agreed):
        other.says = "SUPPORTED" if agreed else "CONTRADICTED"
        await judge.verify_claims(["claim 0.99"] * times, CONTEXT)

    return audit


async def test_a_cascade_counts_what_both_judged(screen, claims, calibration):
    same = ScriptedJudge(verdicts=screen._verdicts)
    same.name = "same"
    judge = CascadeJudge(screen, same, escalate=0.4, audit=0.3, calibration=calibration)
    await judge.verify_claims(claims, CONTEXT)
    (pair,) = judge.agreement()
    assert (pair.first, pair.second, pair.claims) == ("screen", "same", len(claims))
    assert pair.escalated_share == pytest.approx(0.4, abs=0.02)
    assert pair.escalated == round(pair.escalated_share * len(claims))
    assert 0 < pair.audited < len(claims) - pair.escalated
    assert pair.accepted_rate == 1.0
    assert pair.escalated_rate == pytest.approx(1.0, abs=0.1)


async def test_contradicted_and_not_enough_information_agree(screen, better, calibration):
    judge = CascadeJudge(screen, better, escalate=1.0, calibration=calibration)
    await judge.verify_claims(["claim 0.1", "claim 0.9"], CONTEXT)
    (pair,) = judge.agreement()
    assert (pair.escalated, pair.escalated_rate) == (2, 0.5)


async def test_a_drop_is_logged_once_and_the_next_drop_again(audit, caplog):
    with caplog.at_level(logging.WARNING, logger="ragaliq"):
        await audit(1000, agreed=True)
        await audit(200, agreed=False)
        assert caplog.messages == []
        await audit(100, agreed=False)
        assert len(caplog.messages) == 1
        assert "better agrees with only 70% of the last 1000" in caplog.messages[0]
        await audit(1000, agreed=True)
        await audit(300, agreed=False)
    assert len(caplog.messages) == 2


async def test_few_audits_and_escalated_claims_raise_no_warning(audit, screen, better, caplog):
    await audit(29, agreed=False)
    await CascadeJudge(screen, better).verify_claims(["claim 0.99"] * 500, CONTEXT)
    assert caplog.messages == []
    await audit(1, agreed=False)
    assert len(caplog.messages) == 1

"""Who decides which claim."""

from unittest.mock import AsyncMock, MagicMock

import pytest

from ragaliq import (
    CalibratedJudge,
    CascadeJudge,
    ClaimVerdict,
    ConfigurationError,
    LLMJudge,
    LocalJudge,
)
from ragaliq.lab.calibration import fit_calibration
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge

CONTEXT = ["A context."]


def deciders(reply):
    return {verdict.index: verdict.decided_by for verdict in reply.verdicts}


async def test_without_a_calibration_the_next_judge_decides_everything(
    screen, better, claims, asked
):
    judge = CascadeJudge(screen, better, escalate=0.1)
    reply = await judge.verify_claims(claims, CONTEXT)
    assert asked(better) == [claims]
    assert set(deciders(reply).values()) == {"better"}
    assert {verdict.verdict for verdict in reply.verdicts} == {"CONTRADICTED"}
    assert judge.calibration == "uncalibrated"


async def test_with_one_the_least_certain_go_on_in_one_call(
    screen, better, claims, asked, calibration
):
    judge = CascadeJudge(screen, better, escalate=0.4, audit=0.0, calibration=calibration)
    reply = await judge.verify_claims(claims, CONTEXT)
    assert [v.index for v in reply.verdicts] == list(range(len(claims)))
    (batch,) = asked(better)
    assert len(batch) == pytest.approx(0.4 * len(claims), abs=3)
    kept = {v.index for v in reply.verdicts if v.decided_by == "screen"}
    sure = {claims.index(claim) for claim in claims if claim not in batch}
    assert kept == sure
    distance = [abs(float(claim.split()[-1]) - 0.5) for claim in claims]
    assert min(distance[i] for i in sure) >= max(distance[claims.index(c)] for c in batch) - 0.02
    alone = (await CalibratedJudge(screen, calibration).verify_claims(claims, CONTEXT)).verdicts
    for verdict in reply.verdicts:
        if verdict.decided_by == "screen":
            own = alone[verdict.index]
            assert (verdict.verdict, verdict.confidence) == (own.verdict, own.confidence)
            assert verdict.calibration == calibration.id
        else:
            assert verdict.calibration == "uncalibrated"


async def test_a_share_of_the_accepted_is_audited_and_the_better_verdict_wins(
    screen, better, claims, calibration
):
    judge = CascadeJudge(screen, better, escalate=0.0, audit=0.2, calibration=calibration)
    reply = await judge.verify_claims(claims, CONTEXT)
    audited = [verdict for verdict in reply.verdicts if verdict.decided_by == "better"]
    assert len(audited) / len(claims) == pytest.approx(0.2, abs=0.1)
    assert {verdict.verdict for verdict in audited} == {"CONTRADICTED"}
    assert (await judge.verify_claims(claims, CONTEXT)).verdicts == reply.verdicts
    elsewhere = await judge.verify_claims(claims, ["Another context."])
    assert deciders(elsewhere) != deciders(reply)


async def test_a_claim_is_treated_alike_whatever_stands_beside_it(
    screen, better, claims, calibration
):
    judge = CascadeJudge(screen, better, escalate=0.3, audit=0.1, calibration=calibration)
    together = deciders(await judge.verify_claims(claims, CONTEXT))
    backwards = deciders(await judge.verify_claims(claims[::-1], CONTEXT))
    assert {len(claims) - 1 - i: name for i, name in backwards.items()} == together
    alone = [(await judge.verify_claim(claim, CONTEXT)).decided_by for claim in claims[:20]]
    assert alone == [together[i] for i in range(20)]


async def test_a_band_escalates_what_lies_in_it(screen, better, claims, asked, calibration):
    judge = CascadeJudge(screen, better, band=(0.4, 0.7), audit=0.0, calibration=calibration)
    await judge.verify_claims(claims, CONTEXT)
    (batch,) = asked(better)
    for claim in claims:
        support = round(calibration.support(float(claim.split()[-1])), 4)
        assert (claim in batch) == (0.4 <= support < 0.7)


def fitted(screen, support, chance):
    labels = [(i * 0.6180339887) % 1.0 < chance(share) for i, share in enumerate(support)]
    return fit_calibration(screen, support, labels)


async def test_claims_that_are_equally_certain_are_divided_by_their_draw(screen, better, asked):
    support = [(0.1, 0.3, 0.7, 0.9)[i % 4] for i in range(400)]
    calibration = fitted(screen, support, lambda share: share)
    judge = CascadeJudge(screen, better, escalate=0.3, audit=0.0, calibration=calibration)
    claims = [f"claim {i} {share}" for i, share in enumerate(support)]
    await judge.verify_claims(claims, CONTEXT)
    assert len(asked(better)[0]) / len(claims) == pytest.approx(0.3, abs=0.03)


def test_the_labels_promise_how_many_of_the_accepted_are_right(screen, better, calibration):
    half, most, none = (
        CascadeJudge(screen, better, escalate=share, calibration=calibration).screening.accuracy
        for share in (0.5, 0.8, 1.0)
    )
    assert half[1] < half[0] < half[2]
    assert most[0] > half[0] > 0.75
    assert none is None


def test_what_may_be_a_guess_is_not_accepted(screen, better):
    # It knows which claims are wrong; of those it calls right, every other one is.
    support = [(i + 0.5) / 400 for i in range(400)]
    calibration = fitted(screen, support, lambda share: 0.1 if share < 0.3 else 0.5)
    with pytest.raises(ConfigurationError, match=r"50% are right .* may be a guess"):
        CascadeJudge(screen, better, band=(0.0, 0.4), calibration=calibration)
    found = CascadeJudge(screen, better, band=(0.4, 1.0), calibration=calibration)
    assert found.screening.accuracy[0] > 0.85


async def test_with_a_threshold_for_precision_doubtful_rejections_are_the_least_certain(
    screen, better, calibration
):
    strict = calibration.model_copy(update={"min_support": 0.8, "precision": 0.9})
    judge = CascadeJudge(screen, better, escalate=0.3, audit=0.0, calibration=strict)
    # 0.75 is not called supported, although it mostly is.
    reply = await judge.verify_claims(["claim 0.75", "claim 0.95", "claim 0.05"], CONTEXT)
    assert deciders(reply) == {0: "better", 1: "screen", 2: "screen"}


class Model(ScriptedJudge):
    """A language model: its confidence is in the claim, and from 0.9 on it is seldom wrong."""

    name = "model"
    sure_from = 0.9

    def __init__(self):
        super().__init__(
            verdicts=lambda claim, _: ClaimVerdict(
                verdict="SUPPORTED", confidence=float(claim.split()[-1])
            )
        )


async def test_a_language_model_is_taken_at_its_word_where_it_is_sure(better, asked):
    judge = CascadeJudge(Model(), better, escalate="unsure", audit=0.0)
    reply = await judge.verify_claims(["claim 0.95", "claim 0.89", "claim 0.9"], CONTEXT)
    assert deciders(reply) == {0: "model", 1: "better", 2: "model"}
    assert asked(better) == [["claim 0.89"]]
    assert judge.screening.by_judge
    assert judge.agreement()[0].escalated_share == pytest.approx(1 / 3)
    assert not judge.is_unsure(reply.verdicts[0])
    audited = CascadeJudge(Model(), better, escalate="unsure", audit=1.0)
    reply = await audited.verify_claims(["claim 0.95"], CONTEXT)
    assert deciders(reply) == {0: "better"}
    assert audited.agreement()[0].accepted_rate == 0.0


async def test_a_screen_by_wording_needs_a_calibration_to_be_taken_at_its_word(
    better, screen, calibration
):
    with pytest.raises(ConfigurationError, match="does not say when it is right"):
        CascadeJudge(LocalJudge(), better, escalate="unsure")
    judge = CascadeJudge(screen, better, escalate="unsure", audit=0.0, calibration=calibration)
    reply = await judge.verify_claims(["claim 0.99", "claim 0.6"], CONTEXT)
    assert deciders(reply) == {0: "screen", 1: "better"}


async def test_without_any_text_to_read_nobody_is_asked(better):
    judge = CascadeJudge(LocalJudge(), better)
    reply = await judge.verify_claims(["It weighs 3 kg."], [" "])
    assert (reply.verdicts[0].verdict, reply.verdicts[0].decided_by) == ("NOT_ENOUGH_INFO", "local")
    assert better.calls == []


async def test_three_judges_hand_on_what_they_are_not_sure_of(calibration, screen, claims):
    middle, last = ScriptedJudge(verdicts="SUPPORTED"), ScriptedJudge(verdicts="CONTRADICTED")
    middle.name, last.name = "middle", "last"
    judge = CascadeJudge(screen, middle, last, escalate=0.5, calibration=calibration)
    reply = await judge.verify_claims(claims, CONTEXT)
    assert judge.name == "screen>middle>last"
    assert judge.stages[1:] == (middle, last)
    # The one in the middle has no calibration, so nobody takes its word.
    assert set(deciders(reply).values()) == {"screen", "last"}
    assert [(pair.first, pair.second) for pair in judge.agreement()] == [
        ("screen", "middle>last"),
        ("middle", "last"),
    ]


async def test_plain_judges_and_test_doubles_take_part(claims):
    double = MagicMock(spec=LLMJudge)
    double.verify_claim = AsyncMock(return_value=ClaimVerdict(verdict="SUPPORTED"))
    judge = CascadeJudge(PlainScriptedJudge(), double)
    reply = await judge.verify_claims(claims[:3], CONTEXT)
    assert double.verify_claim.await_count == 3
    assert set(deciders(reply).values()) == {"MagicMock"}


async def test_more_claims_than_a_call_may_hold_are_asked_in_several(screen, claims, asked):
    small = ScriptedJudge(verdicts="SUPPORTED")
    small.max_claims, small.max_context_chars = 80, 500
    judge = CascadeJudge(screen, small)
    reply = await judge.verify_claims(claims, CONTEXT)
    assert [len(batch) for batch in asked(small)] == [80, 80, 39]
    assert len(reply.verdicts) == len(claims)
    assert judge.max_context_chars == 500


async def test_the_first_judge_finds_claims_and_the_last_scores_relevance(screen, better):
    judge = CascadeJudge(screen, better)
    await judge.extract_statements("q", "One. Two.")
    await judge.evaluate_relevance("q", "One.")
    assert screen.call_counts == {"extract_statements": 1}
    assert better.call_counts == {"evaluate_relevance": 1}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"escalate": 1.5}, "escalate"),
        ({"escalate": "sure"}, "escalate"),
        ({"audit": -0.1}, "audit"),
        ({"escalate": 0.5, "band": (0.2, 0.8)}, "not both"),
        ({"band": (0.8, 0.2)}, "low < high"),
        ({"band": (0.2, 0.8)}, "calibration"),
        ({"least_agreement": 2}, "least_agreement"),
    ],
)
def test_a_setting_that_is_wrong_is_named(screen, better, settings, says):
    with pytest.raises(ConfigurationError, match=says):
        CascadeJudge(screen, better, **settings)


def test_judges_nobody_could_tell_apart_are_refused(screen):
    with pytest.raises(ConfigurationError, match="another name"):
        CascadeJudge(screen, type(screen)())


def test_the_fingerprint_changes_with_settings_and_calibration(screen, better, calibration):
    prints = {
        CascadeJudge(screen, better).fingerprint(),
        CascadeJudge(screen, better, audit=0.5).fingerprint(),
        CascadeJudge(screen, better, calibration=calibration).fingerprint(),
        CascadeJudge(LocalJudge(), better).fingerprint(),
    }
    assert len(prints) == 4
    assert CascadeJudge(screen, better).fingerprint() in prints

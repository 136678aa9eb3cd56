"""The judge whose confidence is a probability."""

import pytest

from ragaliq import (
    CalibratedJudge,
    Calibration,
    CascadeJudge,
    ClaudeJudge,
    ConfigurationError,
    DatasetError,
    FaithfulnessEvaluator,
    LLMJudge,
    LocalJudge,
    RAGTestCase,
)
from ragaliq.judges.calibration import raw_support
from ragaliq.judges.local.verdict import threshold_of
from ragaliq.lab.calibration import fit_calibration, level_calibration

CONTEXT = ["The museum opened in 1987 and has 3,200 paintings.", "Entry is free on Sundays."]
CLAIMS = [
    "The museum opened in 1987.",
    "Visitors may bring dogs.",
    "The museum has 9,000 paintings.",
]


def calibration_with(threshold, judge=None, n=200):
    """Support up to the threshold is hardly ever right, and beyond it nearly always."""
    support = [index / n for index in range(n)]
    labels = [(x > threshold) != (index % 10 == 0) for index, x in enumerate(support)]
    return fit_calibration(judge or LocalJudge(), support, labels)


async def test_confidence_becomes_the_probability_of_the_verdict():
    calibration = calibration_with(0.5)
    judge = CalibratedJudge(LocalJudge(), calibration)
    raw = (await LocalJudge().verify_claims(CLAIMS, CONTEXT)).verdicts
    found = (await judge.verify_claims(CLAIMS, CONTEXT)).verdicts
    for before, after in zip(raw, found, strict=True):
        chance = calibration.support(raw_support(before))
        wanted = chance if after.verdict == "SUPPORTED" else 1 - chance
        assert after.confidence == pytest.approx(wanted, abs=1e-4)
        assert after.calibration == calibration.id
        assert before.calibration == "uncalibrated"
        assert after.index == before.index
        assert after.evidence == before.evidence


async def test_every_way_of_asking_gives_the_same_verdicts():
    judge = CalibratedJudge(LocalJudge(), calibration_with(0.5))
    together = (await judge.verify_claims(CLAIMS, CONTEXT)).verdicts
    graded = (await judge.grade_statements("", " ".join(CLAIMS), CONTEXT)).verdicts
    for claim, verdict, statement in zip(CLAIMS, together, graded, strict=True):
        alone = await judge.verify_claim(claim, CONTEXT)
        assert alone.verdict == verdict.verdict == statement.verdict
        assert alone.confidence == verdict.confidence == statement.confidence
    asked = ("When is entry free?", "Entry is free on Sundays.")
    assert await judge.evaluate_relevance(*asked) == await LocalJudge().evaluate_relevance(*asked)


@pytest.mark.parametrize(
    ("least", "claim", "context", "own", "calibrated"),
    [
        (0.99, "Entry is free on Sundays.", CONTEXT, "SUPPORTED", "NOT_ENOUGH_INFO"),
        (0.001, "Visitors may bring dogs.", CONTEXT, "NOT_ENOUGH_INFO", "SUPPORTED"),
        (0.001, CLAIMS[2], CONTEXT, "CONTRADICTED", "CONTRADICTED"),
        (0.001, CLAIMS[0], [" "], "NOT_ENOUGH_INFO", "NOT_ENOUGH_INFO"),
    ],
    ids=["too unlikely", "likely enough", "a contradiction stays one", "no context"],
)
async def test_the_probability_decides_and_not_the_judges_own_threshold(
    least, claim, context, own, calibrated
):
    calibration = calibration_with(0.5).model_copy(update={"min_support": least})
    assert (await LocalJudge().verify_claim(claim, context)).verdict == own
    verdict = await CalibratedJudge(LocalJudge(), calibration).verify_claim(claim, context)
    assert verdict.verdict == calibrated
    if own != calibrated == "NOT_ENOUGH_INFO":
        assert "By the calibration, support has a chance of" in verdict.reason


async def test_results_and_their_claims_carry_the_calibrations_id():
    calibration = calibration_with(0.5)
    case = RAGTestCase(query="When?", context=CONTEXT, response=" ".join(CLAIMS))
    judge = CalibratedJudge(LocalJudge(), calibration)
    result = await FaithfulnessEvaluator().evaluate(case, judge)
    assert (result.judge, result.calibration) == ("local", calibration.id)
    assert {claim.calibration for claim in result.claims} == {calibration.id}
    plain = await FaithfulnessEvaluator().evaluate(case, LocalJudge())
    assert plain.calibration == "uncalibrated"
    assert {claim.calibration for claim in plain.claims} == {"uncalibrated"}


def test_a_calibration_of_another_judge_model_or_parameters_is_refused():
    calibration = calibration_with(0.5)
    claude = ClaudeJudge(api_key="x")
    with pytest.raises(ConfigurationError, match="made for judge 'local', not 'claude'"):
        CalibratedJudge(claude, calibration)
    changed = calibration.model_copy(update={"fingerprint": "0" * 16})
    with pytest.raises(ConfigurationError, match="have changed since it was made"):
        CalibratedJudge(LocalJudge(), changed)
    of_claude = calibration_with(0.5, judge=claude)
    with pytest.raises(ConfigurationError, match="made for model"):
        CalibratedJudge(ClaudeJudge("another-model", api_key="x"), of_claude)
    other_prompt = ClaudeJudge(
        api_key="x", prompts={"verify_claims": "Do {{claims}} hold in {{context}}?"}
    )
    with pytest.raises(ConfigurationError, match="parameters or prompts of 'claude'"):
        CalibratedJudge(other_prompt, of_claude)


def test_a_judge_is_calibrated_once_and_must_decide_claims_together():
    calibration = calibration_with(0.5)
    with pytest.raises(ConfigurationError, match="is calibrated already"):
        CalibratedJudge(CalibratedJudge(LocalJudge(), calibration), calibration)

    class Plain(LLMJudge):
        async def extract_claims(self, response): ...
        async def verify_claim(self, claim, context): ...
        async def evaluate_relevance(self, query, response): ...

    with pytest.raises(ConfigurationError, match="Plain is none"):
        CalibratedJudge(Plain(), calibration)


async def test_doubted_evidence_leaves_no_probability():
    class Inventing(LocalJudge):
        async def verify_claims(self, claims, context):
            reply = await super().verify_claims(claims, context)
            made_up = {"verdict": "SUPPORTED", "evidence": "Nobody ever wrote this sentence."}
            return reply.model_copy(
                update={"verdicts": [v.model_copy(update=made_up) for v in reply.verdicts]}
            )

    judge = CalibratedJudge(Inventing(), calibration_with(0.5))
    case = RAGTestCase(query="When?", context=CONTEXT, response="The museum opened in 1987.")
    result = await FaithfulnessEvaluator().evaluate(case, judge)
    assert [claim.calibration for claim in result.claims] == ["uncalibrated"]


HIGH, LOW = [0.9] * 300, [0.2] * 300


@pytest.mark.parametrize(
    ("supports", "threshold"),
    [
        ([0.5] * 300, 0.5),
        ([0.2, 0.8] * 150, 0.5),
        (HIGH, 0.75),  # odds of 9: half the way in log-odds is odds of 3
        ([0.0] * 300, 0.451),  # above every claim whose number is nowhere
        ([1.0] * 300, 0.9901),
    ],
)
def test_the_threshold_of_unlabelled_claims_is_half_the_way_to_their_mean(supports, threshold):
    assert threshold_of(supports) == pytest.approx(threshold, abs=1e-4)


async def test_unlabelled_claims_move_the_threshold_and_no_confidence():
    calibration = level_calibration(LocalJudge(), HIGH)
    judge = CalibratedJudge(LocalJudge(), calibration)
    context = [f"{CONTEXT[0]} Visitors with small children may enter by the north gate."]
    claims = ["The museum opened in 1987.", "Visitors may enter by the gate of the garden."]
    raw = (await LocalJudge().verify_claims(claims, context)).verdicts
    found = (await judge.verify_claims(claims, context)).verdicts
    assert [raw_support(each) for each in found] == [raw_support(each) for each in raw]
    assert [each.verdict for each in raw] == ["SUPPORTED", "SUPPORTED"]
    assert [each.verdict for each in found] == ["SUPPORTED", "NOT_ENOUGH_INFO"]
    assert "count as supported from 0.75" in found[1].reason
    assert {each.calibration for each in found} == {calibration.id}
    assert judge.sure_from == LocalJudge().sure_from


async def test_no_level_supports_a_claim_whose_number_the_context_lacks():
    judge = CalibratedJudge(LocalJudge(), level_calibration(LocalJudge(), LOW))
    claims = ["Visitors of the museum number 1742 on free days.", CLAIMS[2]]
    verdicts = (await judge.verify_claims(claims, CONTEXT)).verdicts
    assert [each.verdict for each in verdicts] == ["NOT_ENOUGH_INFO", "CONTRADICTED"]


async def test_results_with_another_level_have_another_fingerprint():
    case = RAGTestCase(query="When?", context=CONTEXT, response=CLAIMS[0])
    prints = set()
    for supports in (HIGH, LOW):
        judge = CalibratedJudge(LocalJudge(), level_calibration(LocalJudge(), supports))
        prints.add((await FaithfulnessEvaluator().evaluate(case, judge)).fingerprint)
    assert len(prints) == 2


def test_a_level_is_refused_where_labels_are_needed(tmp_path):
    calibration = level_calibration(LocalJudge(), HIGH)
    calibration.save(tmp_path / "level.json")
    assert Calibration.load(tmp_path / "level.json") == calibration
    with pytest.raises(ConfigurationError, match="show no precision"):
        calibration.threshold_for(0.9)
    with pytest.raises(ConfigurationError, match="do not say when the first judge is right"):
        CascadeJudge(LocalJudge(), ClaudeJudge(api_key="x"), calibration=calibration)
    with pytest.raises(ConfigurationError, match="threshold of 'claude' needs labels"):
        level_calibration(ClaudeJudge(api_key="x"), HIGH)
    with pytest.raises(DatasetError, match="there are 299 claims"):
        level_calibration(LocalJudge(), HIGH[1:])

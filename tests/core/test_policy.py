"""The table of awkward cases (product page): what each policy makes of them, and what it asks."""

import math

import pytest

from ragaliq import (
    FaithfulnessEvaluator,
    JudgeRefusalError,
    JudgeResponseError,
    RagaliqError,
    RAGTestCase,
    ScoringPolicy,
)
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(id="bare", query="q", context=["Alpha is one."], response="Alpha is one.")
FOUR = CASE.model_copy(update={"response": "One is. Two is. Three is. Four is."})


class Forgetful(ScriptedJudge):
    """Decides the first of the claims it is asked about."""

    async def verify_claims(self, claims, context):
        return await super().verify_claims(claims[:1], context)


def failing(error):
    return ScriptedJudge(failures={"verify_claims": [error] * 2})


SITUATIONS = {
    "no claims": (CASE, lambda: ScriptedJudge(claims=[])),
    "a blank answer": (CASE.model_copy(update={"response": " \n"}), ScriptedJudge),
    "an answer that declines": (
        CASE.model_copy(update={"response": "I don't know."}),
        ScriptedJudge,
    ),
    "no context": (CASE.model_copy(update={"context": ["  "]}), ScriptedJudge),
    "the judge refuses": (CASE, lambda: failing(JudgeRefusalError("no"))),
    "an unusable reply": (CASE, lambda: failing(JudgeResponseError("no"))),
    "one verdict of two": (
        CASE.model_copy(update={"response": "Alpha is one. Beta is two."}),
        lambda: Forgetful(verdicts="SUPPORTED"),
    ),
    "one verdict of four": (FOUR, lambda: Forgetful(verdicts="CONTRADICTED")),
}
# By policy: the score, whether it passes, the status or the error, how often a judge is asked.
OUTCOMES = {
    "no claims": (
        "RAGALIQ   1.0 passes no_claims, 1",
        "RAGAS     nan fails no_claims, 1",
        "RAG_EVALS 0.0 fails no_claims, 1",
        "PROMPTFOO 0.0 fails no_claims, 1",
        "LIVE      - - no_claims, 1",
    ),
    "a blank answer": (
        "RAGALIQ   1.0 passes empty_answer, 0",
        "RAGAS     nan fails empty_answer, 0",
        "RAG_EVALS 0.0 fails empty_answer, 0",
        "PROMPTFOO 0.0 fails empty_answer, 0",
        "LIVE      - - empty_answer, 0",
    ),
    "an answer that declines": (
        "RAGALIQ   0.0 fails scored, 2",
        "RAGAS     0.0 fails scored, 2",
        "RAG_EVALS 0.0 fails scored, 2",
        "PROMPTFOO 0.0 fails scored, 2",
        "LIVE      - - answer_refused, 1",
    ),
    "no context": (
        "RAGALIQ   0.0 fails scored, 1",
        "RAGAS     DatasetError, 0",
        "RAG_EVALS 0.0 fails scored, 2",
        "PROMPTFOO 0.0 fails scored, 2",
        "LIVE      - - no_context, 0",
    ),
    "the judge refuses": (
        "RAGALIQ   JudgeRefusalError, 2",
        "RAGAS     nan fails judge_refused, 2",
        "RAG_EVALS JudgeRefusalError, 2",
        "PROMPTFOO 0.0 fails judge_refused, 2",
        "LIVE      - - judge_refused, 2",
    ),
    "an unusable reply": (
        "RAGALIQ   JudgeResponseError, 2",
        "RAGAS     nan fails judge_error, 2",
        "RAG_EVALS JudgeResponseError, 2",
        "PROMPTFOO 0.5 fails judge_error, 2",
        "LIVE      - - judge_error, 2",
    ),
    "one verdict of two": (
        "RAGALIQ   1.0 passes scored, 3",
        "RAGAS     1.0 passes partial, 2",
        "RAG_EVALS JudgeResponseError, 2",
        "PROMPTFOO 1.0 passes partial, 2",
        "LIVE      1.0 passes scored, 3",
    ),
    "one verdict of four": (
        "RAGALIQ   JudgeResponseError, 3",
        "RAGAS     0.0 fails partial, 2",
        "RAG_EVALS JudgeResponseError, 2",
        "PROMPTFOO 0.0 fails partial, 2",
        "LIVE      0.0 fails partial, 3",
    ),
}


@pytest.mark.parametrize(
    ("situation", "row"),
    [(situation, row) for situation, rows in OUTCOMES.items() for row in rows],
)
async def test_each_policy_makes_its_own_of_an_awkward_case(situation, row):
    name, expected = row.split(maxsplit=1)
    case, make_judge = SITUATIONS[situation]
    judge, policy = make_judge(), getattr(ScoringPolicy, name)
    try:
        result = await FaithfulnessEvaluator(policy=policy).evaluate(case, judge)
    except RagaliqError as error:
        outcome = type(error).__name__
    else:
        passes = {None: "-", True: "passes", False: "fails"}[result.passed]
        score = "-" if result.score is None else result.score
        outcome = f"{score} {passes} {result.status}"
    assert f"{outcome}, {sum(judge.call_counts.values())}" == expected


@pytest.mark.parametrize(
    ("case", "judge", "policy", "message"),
    [
        (
            SITUATIONS["no context"][0],
            ScriptedJudge(),
            ScoringPolicy.RAGAS,
            "'bare' has no context",
        ),
        (FOUR, Forgetful(), ScoringPolicy.RAGALIQ, "2 of 4 claims"),
        (FOUR, Forgetful(), ScoringPolicy.RAG_EVALS, "3 of 4 claims"),
    ],
)
async def test_an_error_names_the_case_or_how_many_claims_are_undecided(
    case, judge, policy, message
):
    with pytest.raises(RagaliqError, match=message):
        await FaithfulnessEvaluator(policy=policy).evaluate(case, judge)


@pytest.mark.parametrize(
    ("score", "threshold", "passes"),
    [
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.1 + 0.2, True),
        (0.7 - 1e-10, 0.7, True),
        (0.7 - 1e-6, 0.7, False),
        (math.nan, 0.0, False),
    ],
)
def test_a_score_passes_from_the_threshold_on_with_room_for_rounding(score, threshold, passes):
    assert FaithfulnessEvaluator(threshold).is_passing(score) is passes

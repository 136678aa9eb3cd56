"""A metric in plain words, for judges that are asked in words."""

import json

import pytest

from ragaliq import (
    ClaudeJudge,
    ConfigurationError,
    DatasetError,
    Guard,
    JudgeUsage,
    LocalJudge,
    Monitor,
    RAGTestCase,
    Rubric,
    estimate,
    evaluate,
)
from ragaliq.judges.prompted import PromptedJudge

CRITERION = "The answer is polite, and blames nobody."
CASE = RAGTestCase(query="Why?", context=["Alpha is one."], response="It is your own fault.")


class Asked(PromptedJudge):
    """A language model that gives this reply, and keeps what it was asked."""

    name, kind, model = "asked", "llm", "m"

    def __init__(self, reply):
        super().__init__()
        self.reply, self.prompts_seen = reply, []

    async def complete(self, prompt, reply):
        self.prompts_seen.append(prompt)
        return self.reply, JudgeUsage(input_tokens=10, output_tokens=5, requests=1, cost_usd=0.01)


def judge(score=0.2):
    return Asked(json.dumps({"reasoning": "It blames the reader.", "score": score}))


@pytest.mark.parametrize(("score", "threshold"), [(0.2, 0.7), (0.7, 0.7), (0.2, 0.1)])
def test_the_judges_score_is_held_to_the_threshold(score, threshold):
    polite, model = Rubric("polite", CRITERION, threshold), judge(score)
    result = evaluate([CASE], metrics=[polite], judge=model)[0].results["polite"]
    assert (result.score, result.passed) == (score, score >= threshold)
    assert (result.reasoning, result.status) == ("It blames the reader.", "scored")
    assert (result.usage.requests, result.usage.cost_usd) == (1, 0.01)


def test_the_criterion_is_asked_for_and_no_data():
    model = judge()
    evaluate([CASE], metrics=[Rubric("polite", CRITERION)], judge=model)
    (prompt,) = model.prompts_seen
    assert f"\n{CRITERION}\n" in prompt.text
    assert f"<answer>\n{CASE.response}\n</answer>" in prompt.text


def test_it_works_live_and_in_guards():
    polite = Rubric("polite", CRITERION)
    with Monitor(judge=judge(), metrics=[polite]) as monitor:
        assert monitor.evaluate(CASE).results["polite"].score == 0.2
        result = Guard(monitor).check(CASE)
        assert (result.decision, result.below[0].evaluator_name) == ("rejected", "polite")


@pytest.mark.parametrize(
    ("case", "reply", "status"),
    [
        (CASE.model_copy(update={"response": " "}), "", "empty_answer"),
        (CASE, "I would say it is fine.", "judge_error"),
    ],
)
def test_what_cannot_be_scored_has_a_status(case, reply, status):
    result = evaluate([case], metrics=[Rubric("polite", CRITERION)], judge=Asked(reply))[0]
    assert (result.results["polite"].status, result.results["polite"].score) == (status, None)


def test_another_criterion_is_another_fingerprint():
    model = judge()
    one, other = Rubric("polite", CRITERION), Rubric("polite", "The answer is short.")
    assert one.fingerprint(model) != other.fingerprint(model)


def test_results_by_another_criterion_are_not_continued(tmp_path):
    journal = tmp_path / "results.jsonl"
    evaluate([CASE], metrics=[Rubric("polite", CRITERION)], judge=judge(), journal=journal)
    again = judge()
    evaluate([CASE], metrics=[Rubric("polite", CRITERION)], judge=again, journal=journal)
    assert again.prompts_seen == []
    with pytest.raises(DatasetError, match=r"polite 0\.7 by criterion"):
        evaluate([CASE], metrics=[Rubric("polite", "It is rude.")], judge=judge(), journal=journal)


def test_its_cost_can_be_known_before():
    claude = ClaudeJudge(api_key="none-is-needed")
    usage = estimate([CASE], metrics=[Rubric("polite", CRITERION)], judge=claude).usage
    assert usage.requests == 1
    assert usage.cost_usd > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("is polite", CRITERION), "letters, digits and underscores"),
        (("p" * 65, CRITERION), "at most 64 letters"),
        (("1st", CRITERION), "the first no digit"),
        (("faithfulness", CRITERION), "the name of another metric"),
        (("polite", " "), "say what a good answer does"),
        (("polite", CRITERION, 2.0), "threshold"),
    ],
)
def test_a_wrong_rubric_is_named(arguments, said):
    with pytest.raises(ConfigurationError, match=said):
        Rubric(*arguments)


def test_a_judge_that_is_not_asked_in_words_is_refused():
    with pytest.raises(ConfigurationError, match="asked in words"):
        evaluate([CASE], metrics=[Rubric("polite", CRITERION)], judge=LocalJudge())

"""`assert_rag` as tests use it."""

import pytest

from ragaliq import RAGTestCase, ScoringPolicy
from ragaliq.errors import (
    ConfigurationError,
    DatasetError,
    JudgeAPIError,
    JudgeRefusalError,
    JudgeTimeoutError,
)
from ragaliq.pytest_plugin import RagAssertionError, assert_rag
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(
    name="opening hours",
    query="When?",
    context=["The shop opens at 9."],
    response="The shop opens at 9. It closes at 5.",
)


def test_an_answer_that_reaches_its_thresholds_passes_and_gives_its_results():
    results = assert_rag(CASE, judge="local", faithfulness=0.5, hallucination=0.5)
    assert set(results) == {"faithfulness", "hallucination"}
    assert results["faithfulness"].score == 0.5


def test_the_message_names_the_unsupported_claims_with_scores_and_judge():
    with pytest.raises(RagAssertionError) as failed:
        assert_rag(CASE, judge="local", faithfulness=0.8)
    message = str(failed.value)
    assert message.splitlines()[:5] == [
        "faithfulness 0.50 < 0.80: 'It closes at 5.' is not in the context",
        "  question: When? (opening hours)",
        "  judge: local",
        "    NOT_ENOUGH_INFO: It closes at 5.",
        "      closest in the context: The shop opens at 9.",
    ]
    assert failed.value.results["faithfulness"].score == 0.5


def test_claims_that_metrics_share_are_shown_once():
    with pytest.raises(RagAssertionError) as failed:
        assert_rag(CASE, judge="local", faithfulness=0.8, hallucination=0.8)
    assert str(failed.value).count("NOT_ENOUGH_INFO: It closes at 5.") == 1
    assert (
        "\n  hallucination 0.50 < 0.80: Found 1 hallucinated claims out of 2.\n"
        in f"{failed.value}\n"
    )


def test_without_thresholds_faithfulness_must_reach_its_own():
    with pytest.raises(RagAssertionError, match=r"faithfulness 0\.50 < 0\.70"):
        assert_rag(CASE, judge="local")


@pytest.mark.parametrize(
    ("answer", "status"),
    [("", "empty_answer"), ("# Opening hours", "no_claims"), ("I don't know.", "answer_refused")],
)
def test_an_answer_that_says_nothing_fails_the_test_unless_a_policy_passes_it(answer, status):
    case = CASE.model_copy(update={"response": answer})
    with pytest.raises(RagAssertionError, match=rf"faithfulness: no score \({status}\)"):
        assert_rag(case, judge="local")
    assert assert_rag(case, judge="local", policy=ScoringPolicy.RAGALIQ)["faithfulness"].passed


def test_control_characters_of_an_answer_do_not_reach_the_terminal():
    case = CASE.model_copy(update={"response": "Parrots \x1b[2J juggle seventeen lanterns."})
    with pytest.raises(RagAssertionError) as failed:
        assert_rag(case, judge="local")
    assert "\x1b" not in str(failed.value)


@pytest.mark.parametrize("error", [JudgeAPIError, JudgeTimeoutError, JudgeRefusalError])
def test_a_judge_that_fails_is_an_error_and_no_low_score(error):
    judge = ScriptedJudge(failures={"evaluate_relevance": [error("down")]})
    with pytest.raises(error, match="relevance could not be judged: down"):
        assert_rag(CASE, judge=judge, relevance=0.1)


def test_a_case_that_lacks_what_a_metric_needs_is_an_error():
    with pytest.raises(DatasetError, match=r"context_recall has no score: no_reference\. \w+"):
        assert_rag(CASE, judge="local", context_recall=0.5)


def test_what_is_no_case_is_refused():
    with pytest.raises(ConfigurationError, match=r"must be a RAGTestCase\(.*, not a dict"):
        assert_rag({"query": "q"})


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"faithfullness": 0.5}, "no metric 'faithfullness'"),
        ({"faithfulness": 8}, r"within \[0, 1\], got 8"),
    ],
)
def test_wrong_thresholds_are_refused(thresholds, message):
    with pytest.raises(ConfigurationError, match=message):
        assert_rag(CASE, judge="local", **thresholds)


def test_the_line_of_a_failed_test_begins_with_the_short_name():
    with pytest.raises(RagAssertionError) as failed:
        assert_rag(CASE, judge="local", faithfulness=0.8)
    assert failed.exconly().startswith("RagAssertionError: faithfulness 0.50 < 0.80")

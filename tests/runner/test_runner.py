import asyncio
import math
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from ragaliq import (
    CascadeJudge,
    ClaudeJudge,
    ConfigurationError,
    ContextChunk,
    EvaluationJournal,
    FaithfulnessEvaluator,
    JudgeAPIError,
    JudgeUsage,
    LocalJudge,
    OpenAICompatibleJudge,
    RAGTestCase,
    ScoringPolicy,
    Turn,
    evaluate,
)
from ragaliq.core.test_case import CaseSources
from ragaliq.judges.base import ClaimVerdict
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge


def cases(number):
    return [
        RAGTestCase(id=str(i), query=f"q{i}", context=["Alpha is one."], response=f"Answer {i}.")
        for i in range(number)
    ]


def test_results_come_in_the_order_of_the_cases():
    class Uneven(ScriptedJudge):
        async def extract_statements(self, query, response):
            await asyncio.sleep(0.002 * (7 - int(query[1:]) % 7))
            return await super().extract_statements(query, response)

    run = evaluate(cases(20), judge=Uneven(), concurrency=5)
    assert [row.case.id for row in run] == [str(i) for i in range(20)]


@pytest.mark.parametrize(
    ("given", "line", "row"),
    [
        ([], "No answers were evaluated", "| none |  | 0 of 0 | 0 | at least 0.7 |"),
        (
            [RAGTestCase(query="q", context=["c"], response=" ")],
            "0 of 1 answers pass every metric",
            "| none |  | 0 of 1 | 0 | at least 0.7 | 1 empty_answer |",
        ),
        (
            [RAGTestCase(query="q", response="An answer.")],
            "0 of 1 answers pass every metric",
            "| none |  | 0 of 1 | 0 | at least 0.7 | 1 no_context |",
        ),
    ],
)
def test_what_has_nothing_to_verify_does_not_pass(given, line, row):
    text = evaluate(given).summary()
    assert text.startswith(f"**{line}.**")
    assert f"| faithfulness {row}" in text


def test_a_policy_that_passes_empty_answers_is_seen_in_the_summary():
    given = [RAGTestCase(query="q", context=["c"], response="")]
    text = evaluate(given, policy=ScoringPolicy.RAGALIQ).summary()
    assert "1 of 1 answers pass" in text
    assert "1 empty_answer (pass)" in text


def test_an_answer_evaluated_several_times_is_listed_once():
    given = [RAGTestCase(id=name, query="q", context=["One."], response="Two.") for name in "ab"]
    run = evaluate(given, repeats=3)
    listed = [line[:4] for line in run.summary().splitlines() if line[0:1] == "-"]
    assert sorted(listed) == ["- a ", "- b "]  # equally bad ones as they were finished
    assert run._repr_html_().count("<p><b>") == 2
    assert len(run.failures) == 6


def test_one_failed_case_keeps_the_others_and_stays_out_of_the_mean():
    failures = {"extract_statements": [None, JudgeAPIError("down"), None]}
    judge = ScriptedJudge(verdicts="SUPPORTED", failures=failures)
    run = evaluate(cases(3), metrics=["faithfulness"], judge=judge, concurrency=1)
    summary = run.metrics["faithfulness"]
    assert (summary.mean, summary.measured) == (1.0, 2)
    assert summary.statuses == {"scored": 2, "judge_error": 1}
    assert run[1].results["faithfulness"].score is None


def half(claim, _):
    number = int(claim.split()[1].rstrip("."))
    return ClaimVerdict(verdict="SUPPORTED" if number % 2 else "CONTRADICTED")


@pytest.mark.parametrize(
    ("metric", "judge", "mean", "low", "method"),
    [
        ("faithfulness", ScriptedJudge(verdicts=half), 0.5, 0.15, "wilson"),
        ("faithfulness", ScriptedJudge(verdicts="SUPPORTED"), 1.0, 0.510109, "wilson"),
        (
            "relevance",
            ScriptedJudge(relevance=lambda q, _: 0.2 + 0.1 * int(q[1:])),
            0.35,
            0.179,
            "logit_t",
        ),
    ],
    ids=["half of them", "equal scores", "between the bounds"],
)
def test_a_mean_comes_with_an_interval_that_has_a_width_and_the_name_of_its_method(
    metric, judge, mean, low, method
):
    summary = evaluate(cases(4), metrics=[metric], judge=judge).metrics[metric]
    assert (summary.mean, summary.interval_method) == (pytest.approx(mean), method)
    assert summary.interval[0] == pytest.approx(low, abs=0.01)
    assert 0.0 < summary.interval[0] < mean <= summary.interval[1] <= 1.0


def test_progress_is_told_after_each_case():
    seen = []
    evaluate(cases(3), judge=ScriptedJudge(), on_progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_journal_without_texts_keeps_no_answers_of_an_application(tmp_path):
    answer, _, up = asked_application()
    up.append(True)
    journal = EvaluationJournal(tmp_path / "results.jsonl", keeps_text=False)
    assert len(evaluate(answer, ["How long?"], journal=journal)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"metrics": ["nonsense"]},
        {"judge": "nobody"},
        {
            "judge": PlainScriptedJudge(failures={"evaluate_relevance": AssertionError}),
            "metrics": ["relevance", FaithfulnessEvaluator(strategy="batched")],
        },
    ],
)
def test_wrong_settings_are_refused_before_anything_is_judged(wrong):
    with pytest.raises(ConfigurationError):
        evaluate(cases(1), **({"judge": ScriptedJudge()} | wrong))


def test_a_raising_progress_callback_loses_no_results(caplog):
    def on_progress(done, total):
        raise ValueError("secret")

    run = evaluate(cases(3), judge=ScriptedJudge(), on_progress=on_progress)
    assert len(run) == 3
    assert "on_progress raised ValueError" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (len, r"to ask an application, give its questions: evaluate\(app, questions\)"),
        ("cases.jsonl", r"not str; read a file by read_cases\(path\)"),
        (Path("cases.jsonl"), r"read a file by read_cases\(path\)"),
        ([{"query": "q"}], r"cases\[0\] must be a RAGTestCase, not dict; make one by"),
        ([*cases(1), None], r"cases\[1\] must be a RAGTestCase"),
        (cases(1)[0], r"give \[case\] for a single one"),
    ],
)
def test_what_is_no_list_of_cases_is_refused_in_words(given, says):
    with pytest.raises(ConfigurationError, match=says):
        evaluate(given)


@pytest.mark.parametrize("max_cost", ["2.00", float("nan"), -1])
def test_a_cap_that_is_no_amount_of_money_is_refused_before_anything_is_paid(max_cost):
    judge = ScriptedJudge(usage=JudgeUsage(input_tokens=1, cost_usd=0.25))
    with pytest.raises(ConfigurationError, match="evaluate: max_cost must be US dollars, got"):
        evaluate(cases(2), judge=judge, max_cost=max_cost)
    assert not judge.calls


def test_a_script_is_not_asked_of_the_environments_judge(monkeypatch):
    monkeypatch.setenv("RAGALIQ_JUDGE", "claude")
    assert evaluate(cases(1))[0].results["faithfulness"].judge == "local"


def test_a_missing_reference_is_no_reference_and_not_a_missing_context():
    case = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")
    run = evaluate([case], metrics=["context_recall"], judge=ScriptedJudge())
    assert run.metrics["context_recall"].statuses == {"no_reference": 1}


@pytest.mark.parametrize("question", ["", "  \n"])
def test_a_blank_question_only_matters_to_metrics_that_need_it(question):
    case = RAGTestCase(query=question, context=["Alpha is one."], response="Alpha is one.")
    judge = ScriptedJudge()
    run = evaluate([case], metrics=["faithfulness", "relevance", "context_precision"], judge=judge)
    assert {name: set(metric.statuses) for name, metric in run.metrics.items()} == {
        "faithfulness": {"scored"},
        "relevance": {"no_question"},
        "context_precision": {"no_question"},
    }


REFUNDS = "Refunds take five days."


def asked_application():
    """An application that counts what it is asked, and answers only once it is up."""
    asked, up = [], []

    def answer(question):
        asked.append(question)
        if question == "Who pays?" and not up:
            raise ConnectionError
        return RAGTestCase(query=question, context=[REFUNDS], response=REFUNDS)

    return answer, asked, up


def test_an_applications_answers_are_kept_next_to_the_journal_and_not_asked_for_again(
    tmp_path, caplog
):
    answer, asked, up = asked_application()
    again = partial(
        evaluate, answer, ["How long?", "Who pays?"], journal=tmp_path / "results.jsonl"
    )
    assert [each.id for each in again().unanswered] == ["question 2"]
    assert not caplog.messages
    up.append(True)
    run = again()
    assert "results.answers.jsonl: 1 answers are kept there and not" in caplog.messages[0]
    assert ([each.case.query for each in run], run.unanswered) == (["How long?", "Who pays?"], ())
    assert sorted(asked) == ["How long?", "Who pays?", "Who pays?"]
    kept = tmp_path / "results.answers.jsonl"
    assert len(kept.read_text().splitlines()) == 2
    (tmp_path / "results.jsonl").unlink()
    evaluate(answer, ["How long?"], journal=tmp_path / "results.jsonl")
    assert len(kept.read_text().splitlines()) == 2  # what was not asked this time was paid for too


def test_texts_that_only_the_judge_may_see_stay_so_in_kept_answers(tmp_path):
    def answer(question):
        sources = CaseSources(has_fetched_texts=True)
        return RAGTestCase(query=question, context=[REFUNDS], response=REFUNDS, sources=sources)

    for _ in range(2):
        evaluate(answer, ["How long?"], journal=(results := tmp_path / "results.jsonl"))
        results.unlink()
        kept = (tmp_path / "results.answers.jsonl").read_text()
        case = RAGTestCase.model_validate_json(kept)
        assert case.sources.has_fetched_texts


@pytest.mark.parametrize(
    "wrong",
    [
        {"metrics": ["faithfulnes"]},
        {"goals": ["relevance=0.9"], "metrics": ["faithfulness"]},
        {"max_cost": 1.0, "judge": ClaudeJudge("claude-made-of-tests", api_key="not-a-key")},
        {"sinks": ["nowhere://"]},
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_before_an_application_is_asked(wrong):
    answer, asked, _ = asked_application()
    with pytest.raises(ConfigurationError):
        evaluate(answer, ["How long?"], **wrong)
    assert not asked


@pytest.mark.parametrize(
    ("base_url", "model", "is_unpriced"),
    [
        ("https://api.openai.com/v1", "gpt-5-mini", False),
        ("https://api.openai.com/v1", "made-of-tests", True),
        ("https://openrouter.ai/api/v1", "made-of-tests", False),  # its replies say what they cost
        ("http://localhost:8000/v1", "made-of-tests", False),  # perhaps a gateway, which says it
    ],
)
def test_only_a_price_that_no_reply_can_name_is_known_to_be_missing(base_url, model, is_unpriced):
    judge = OpenAICompatibleJudge(model=model, base_url=base_url, api_key="not-a-key")
    assert (judge.is_unpriced, CascadeJudge(LocalJudge(), judge).is_unpriced) == (is_unpriced,) * 2


def test_the_first_of_equally_low_answers_are_shown_however_late_they_are_done():
    class Backwards(ScriptedJudge):
        async def extract_statements(self, query, response):
            await asyncio.sleep(0.002 * (8 - int(query[1:])))
            return await super().extract_statements(query, response)

    def denied(claim, context):
        return ClaimVerdict(verdict="CONTRADICTED")

    run = evaluate(cases(8), judge=Backwards(verdicts=denied), metrics=["faithfulness"])
    assert [bad.id for bad in run.worst] == [str(i) for i in range(5)]


TWINS = [RAGTestCase(id="x", query=query, response="") for query in ("How long?", "Who pays?")]


@pytest.mark.parametrize(
    ("questions", "says"),
    [
        ("How long?", r"questions must be a list; give \[question\]"),
        (["How long?", 3], r"questions\[1\] must be a text or a RAGTestCase, not int"),
        (TWINS, "two questions have the id 'x'"),
    ],
)
def test_questions_that_would_be_mixed_up_are_refused_before_any_is_asked(questions, says):
    answer, asked, _ = asked_application()
    with pytest.raises(ConfigurationError, match=says):
        evaluate(answer, questions)
    assert not asked


@pytest.mark.parametrize("ids", [("x", "x"), ("x", "x#2")])
def test_a_journal_refuses_cases_that_it_could_not_tell_apart(tmp_path, ids):
    todo = [case.model_copy(update={"id": name}) for case, name in zip(cases(2), ids, strict=True)]
    judge = ScriptedJudge()
    with pytest.raises(ConfigurationError, match=r"two cases have the id 'x(#2)?'"):
        evaluate(todo, judge=judge, repeats=2, journal=tmp_path / "results.jsonl")
    assert not judge.calls


@pytest.mark.parametrize("goal", ["faithfulness=1", 1.0, 1])
def test_a_goal_alone_needs_no_list(goal):
    judge = ScriptedJudge(verdicts=lambda *_: ClaimVerdict(verdict="CONTRADICTED"))
    run = evaluate(cases(1), metrics=["faithfulness"], judge=judge, goals=goal)
    assert len(run.problems) == 1


@pytest.mark.parametrize("app", [lambda: None, lambda question, k: None, lambda *, question: None])
def test_a_function_that_takes_no_question_is_refused_in_words(app):
    with pytest.raises(ConfigurationError, match="is called with one argument, the question's tex"):
        evaluate(app, ["How long?"])


def test_any_answer_that_was_kept_is_read_again(tmp_path):
    asked = []

    def answer(question):
        asked.append(question)
        held = {
            "when": date(2026, 1, 1),
            "rank": math.nan,
            "raw": b"x",
            "set": {1},
            "own": object(),
        }
        return RAGTestCase(
            query=question,
            context=[ContextChunk(text="It is \ud800.\u2028", id=3, score=0.5, metadata=held)],
            response="It is \ud800.",
            prompt_context="note",
            history=[Turn(role="user", text="Hello", context=["It is."])],
            metadata=held,
        )

    for _ in range(2):
        run = evaluate(answer, ["Is it \ud800?"], journal=tmp_path / "results.jsonl")
        assert (len(run), run.unanswered) == (1, ())
    assert len(asked) == 1
    assert (run[0].case.prompt_context, run[0].case.history[0].text) == ("note", "Hello")

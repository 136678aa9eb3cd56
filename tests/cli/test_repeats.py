"""`--repeats`: a case judged several times stays one observation, in every figure made of it."""

import json

import pytest

from ragaliq.records.summary import joint_score, joint_status

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
BAD = GOOD | {"response": "Parrots juggle lanterns."}
CASES = (GOOD, GOOD, GOOD, BAD, BAD)
FAITHFULNESS = ("--metrics", "faithfulness")


@pytest.fixture
def judged(ragaliq, write_cases):
    """`judged(NAME, *cases, repeats=N)` writes a results file and returns the run's output."""

    def run(name, *cases, repeats=1):
        data = write_cases(*(cases or CASES))
        done = ragaliq(
            "evaluate", data, "--repeats", repeats, "--out", f"{name}.jsonl", *FAITHFULNESS
        )
        return done.stdout

    return run


def row_of(text, start):
    return next(line.split() for line in text.splitlines() if line.startswith(start))


def test_a_steady_judge_gives_the_same_figures_however_often_it_is_asked(judged):
    once, thrice = judged("once"), judged("thrice", repeats=3)

    assert row_of(thrice, "faithfulness ") == row_of(once, "faithfulness ")
    assert "5 of 5" in thrice
    assert "5 cases, 15 judged" in thrice
    assert "a case's score spreads by 0.000 when repeated" in thrice
    listed = [line.split("  ")[1] for line in thrice.splitlines() if line.endswith("  When?")]
    assert listed == ["case-3", "case-4"]


def test_repeats_are_compared_case_by_case_also_with_a_plain_run(ragaliq, judged):
    judged("once")
    judged("before", repeats=3)
    judged("after", BAD, GOOD, GOOD, BAD, BAD, repeats=3)

    same = ragaliq("compare", "once.jsonl", "before.jsonl")
    moved = ragaliq("compare", "before.jsonl", "after.jsonl")

    assert "5 cases paired" in same.stdout
    assert "no partner" not in same.stderr
    assert "5 cases paired" in moved.stdout
    assert "1.00 -> 0.00  case-0" in moved.stdout
    assert "#2" not in moved.stdout


def test_a_claim_is_labelled_once_however_often_it_was_judged(ragaliq, judged, monkeypatch):
    judged("thrice", repeats=3)
    monkeypatch.setattr("typer.getchar", lambda: "s")

    done = ragaliq("label", "thrice.jsonl", "-o", "labels.jsonl")

    assert "5 of 5 claims are labelled" in done.stdout


def test_the_report_counts_answers_and_says_how_often_they_were_judged(ragaliq, judged, tmp_path):
    judged("once")
    judged("thrice", repeats=3)
    for name in ("once", "thrice"):
        ragaliq("report", f"{name}.jsonl", "-o", f"{name}.html")

    once, thrice = ((tmp_path / f"{name}.html").read_text() for name in ("once", "thrice"))

    assert "<dt>Answers</dt><dd>5</dd>" in once
    assert "<dt>Answers</dt><dd>5, evaluated 15 times</dd>" in thrice
    assert "an answer counts once" in thrice
    spread = " <small>a score spreads by 0.00 when repeated</small>"
    assert spread in thrice
    assert scores_table(thrice).replace(spread, "") == scores_table(once)
    assert charts_of(thrice) == charts_of(once)


def scores_table(page):
    return page[page.index("scores-title") : page.index("<form")]


def charts_of(page):
    data = json.loads(page.split('<script type="application/json" id="data">')[1].split("<")[0])
    return [series["charts"] for series in data["series"]]


def test_a_failed_judging_is_no_status_of_a_case_that_was_judged():
    assert joint_status(["judge_error", "judge_error", "no_claims"]) == "no_claims"
    assert joint_status(["no_claims", "partial", "no_claims"]) == "partial"
    assert joint_status(["judge_error", "judge_timeout", "judge_timeout"]) == "judge_timeout"


@pytest.mark.parametrize("score", [0.1, 1 / 3, 0.7, 2 / 7])
def test_a_steady_score_stays_what_it_is(score):
    assert all(joint_score([score] * times) == score for times in range(1, 12))

"""`ragaliq evaluate`."""

import csv
import stat
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ragaliq import read_records

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
BAD = GOOD | {"response": "The shop opens at 9. Parrots juggle seventeen lanterns."}
FAITHFULNESS = ("--metrics", "faithfulness")


def test_cases_are_scored_and_summed_up(ragaliq, write_cases, records):
    done = ragaliq("evaluate", write_cases(GOOD, BAD), "--out", "results.jsonl")

    assert "faithfulness  0.75  too few for an interval" in done.stdout
    assert "2 judged, 0 tokens, $0.0000" in done.stdout
    assert "The embedded judge compares words" in done.stdout
    scores = {r["run"]["run_id"]: r["results"]["faithfulness"]["score"] for r in records()}
    assert scores == {"case-0": 1.0, "case-1": 0.5}


def test_without_out_only_the_summary_is_given(ragaliq, write_cases, tmp_path):
    done = ragaliq("evaluate", write_cases(GOOD), *FAITHFULNESS)

    assert [path.name for path in tmp_path.iterdir()] == ["cases.jsonl"]
    assert "claim by claim: add --out report.html" in done.stderr


@pytest.mark.parametrize(
    ("goal", "code", "said"),
    [
        ("faithfulness=0.75", 0, ""),
        ("faithfulness=0.8", 1, "faithfulness has a mean of 0.7500, below 0.8"),
    ],
)
def test_a_mean_below_the_goal_ends_with_code_1(ragaliq, write_cases, goal, code, said):
    done = ragaliq(
        "evaluate", write_cases(GOOD, BAD), *FAITHFULNESS, "--fail-under", goal, code=code
    )

    assert said in done.stderr


@pytest.mark.parametrize(
    ("goal", "code", "said"),
    [("0.5", 0, ""), ("0.4", 1, "a mean of 0.5000, above 0.4 (low is good)")],
)
def test_where_low_is_good_a_mean_above_the_goal_ends_with_code_1(
    ragaliq, write_cases, goal, code, said
):
    wrong = GOOD | {"context": ["It weighs 310 grams."], "response": "It weighs 410 grams."}
    done = ragaliq(
        "evaluate", write_cases(GOOD, wrong), "--metrics", "contradiction_rate",
        "--fail-under", f"contradiction_rate={goal}", "--out", "junit.xml", code=code,
    )  # fmt: skip

    assert said in done.stderr
    assert "contradiction_rate  0.50  " in done.stdout
    assert "at most " in done.stdout
    assert "contradiction_rate 1.00 &gt; 0.00" in Path("junit.xml").read_text()


@pytest.mark.parametrize(
    ("change", "status"), [({"context": []}, "no_context"), ({"response": " \n"}, "empty_answer")]
)
def test_a_metric_without_a_score_does_not_reach_its_goal(ragaliq, write_cases, change, status):
    goal = ("--fail-under", "faithfulness=0.1")
    done = ragaliq("evaluate", write_cases(GOOD | change), *FAITHFULNESS, *goal, code=1)

    assert "faithfulness has no score at all" in done.stderr
    assert f"1 {status}" in done.stdout


def test_a_judge_that_is_away_is_told_from_bad_answers_and_says_why(ragaliq, write_cases):
    goals = ("--fail-under", "faithfulness=0.5", "--fail-under", "0.9")
    done = ragaliq(
        "evaluate", write_cases(GOOD, BAD), *FAITHFULNESS, "--judge", "openai", "--model", "m",
        "--base-url", "http://127.0.0.1:9/v1", *goals, OPENAI_API_KEY="key-not-to-be-seen", code=4,
    )  # fmt: skip

    assert "the judge failed on every case: faithfulness" in done.stderr
    assert "failures of the judge: 2 with JudgeAPIError: the connection to" in done.stderr
    assert "has no score at all" not in done.stderr
    assert "answers pass, asked" not in done.stderr
    assert "Parrots" not in done.stderr
    assert "key-not" not in done.stderr


def test_what_passes_without_a_score_is_not_counted_among_the_scored(ragaliq, write_cases):
    refusal = GOOD | {"response": "I don't know."}

    live = ragaliq("evaluate", write_cases(refusal, GOOD), *FAITHFULNESS)
    done = ragaliq("evaluate", write_cases(refusal, GOOD), *FAITHFULNESS, "--policy", "ragaliq")

    row, passes = "1 of 2  1       at least 0.7", "faithfulness: 1 scored, 1 "
    assert row in done.stdout
    assert row in live.stdout
    assert f"{passes}no_claims (pass)" in done.stdout
    assert f"{passes}answer_refused" in live.stdout
    assert "(pass)" not in live.stdout


def test_a_resumed_run_judges_what_is_missing_and_nothing_else(
    ragaliq, write_cases, records, tmp_path
):
    cases = write_cases(GOOD, BAD, GOOD)
    ragaliq("evaluate", cases, "--out", "results.jsonl")
    first = records()[:1]
    lines = (tmp_path / "results.jsonl").read_text().splitlines(keepends=True)
    # The second result was being written when the power went.
    (tmp_path / "results.jsonl").write_text("".join(lines[:2]) + lines[2][:100])

    done = ragaliq("evaluate", cases, "--out", "results.jsonl", "--resume")

    assert records()[:1] == first
    assert sorted(r["run"]["run_id"] for r in records()) == ["case-0", "case-1", "case-2"]
    assert "3 judged (1 in earlier runs)" in done.stdout
    again = ragaliq("evaluate", cases, "--out", "results.jsonl", "--resume")
    assert "3 judged (all in earlier runs)" in again.stdout


def test_only_their_owner_may_read_the_files_that_hold_texts(ragaliq, write_cases, tmp_path):
    names = ["results.jsonl", "table.csv", "junit.xml", "page.html", "summary.md"]
    outs = [part for name in names[:-1] for part in ("--out", name)]

    ragaliq("evaluate", write_cases(GOOD), *outs, "--summary", names[-1], *FAITHFULNESS)

    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names} == {0o600}


def test_a_spreadsheet_gets_no_formula(ragaliq, write_cases, tmp_path):
    more = {"x": " \t=1+1", "y": "＝1+1", "z": "\ufeff-2+3", "w": "\n@SUM(1)", "v": "a;=1+1"}
    case = GOOD | {"query": "=HYPERLINK(1)", "id": "@SUM", "+2": "a column"} | more

    ragaliq("evaluate", write_cases(case), "--out", "table.csv", *FAITHFULNESS)

    with (tmp_path / "table.csv").open(encoding="utf-8-sig", newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["id"], row["query"], row["'+2"]) == ("'@SUM", "'=HYPERLINK(1)", "a column")
    assert [row[name] for name in more] == [f"'{more[name]}" for name in "xyzw"] + [more["v"]]
    assert '"a;=1+1"' in (tmp_path / "table.csv").read_text(encoding="utf-8-sig")
    assert (row["faithfulness.score"], row["faithfulness.passed"]) == ("1", "true")


def test_ci_systems_see_a_failure_with_its_claims(ragaliq, write_cases, tmp_path):
    bad = BAD | {"response": "Parrots \x1b juggle seventeen <lanterns>."}

    ragaliq("evaluate", write_cases(GOOD, bad), "--out", "junit.xml", *FAITHFULNESS)

    [suite] = ET.parse(tmp_path / "junit.xml").getroot()
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == (
        "faithfulness",
        "2",
        "1",
    )
    [failure] = suite.iter("failure")
    assert (
        failure.text
        == "NOT_ENOUGH_INFO: Parrots \N{REPLACEMENT CHARACTER} juggle seventeen <lanterns>."
    )


def test_no_text_is_kept_when_none_is_wanted(ragaliq, write_cases, tmp_path):
    ragaliq("evaluate", write_cases(BAD), "--out", "results.jsonl", "--no-text")

    assert "lanterns" not in (tmp_path / "results.jsonl").read_text()
    assert "faithfulness" in (tmp_path / "results.jsonl").read_text()


def test_a_sink_that_does_not_store_the_results_ends_with_code_3(ragaliq, write_cases):
    cases = write_cases(GOOD, BAD)
    done = ragaliq("evaluate", cases, "--sink", f"sqlite:///{cases.name}", code=3)

    assert "2 judged" in done.stdout
    assert "sink sqlite: 2 not stored" in done.stderr


@pytest.mark.parametrize("product", ["phoenix", "langfuse", "mlflow"])
def test_a_sink_of_spans_is_refused_at_once_for_cases_without_traces(ragaliq, write_cases, product):
    keys = {"LANGFUSE_PUBLIC_KEY": "k", "LANGFUSE_SECRET_KEY": "k"}
    sink = f"{product}://127.0.0.1:1"
    done = ragaliq("evaluate", write_cases(GOOD, BAD), "--sink", sink, code=2, **keys)

    assert f"--sink: {product} keeps scores on the spans" in done.stderr
    assert "sqlite:///" in done.stderr  # the way out
    assert not done.stdout  # nothing was judged


def test_a_sink_with_no_place_for_the_results_ends_with_code_3(ragaliq, write_cases):
    keys = {"LANGSMITH_API_KEY": "k", "LANGSMITH_ENDPOINT": "http://127.0.0.1:1"}  # never asked
    done = ragaliq("evaluate", write_cases(GOOD, BAD), "--sink", "langsmith", code=3, **keys)

    assert "sink langsmith: 2 passed over" in done.stderr


def test_a_misspelt_metric_of_a_goal_gets_the_right_name_and_no_wrong_advice(ragaliq, write_cases):
    for option in ("--fail-under", "--threshold"):
        done = ragaliq("evaluate", write_cases(GOOD), option, "faithfulnes=0.9", code=2)
        assert "did you mean 'faithfulness'?" in done.stderr
        assert "--metrics" not in done.stderr


def test_a_rubric_needs_a_judge_that_is_a_language_model(ragaliq, write_cases):
    polite = "polite=The answer is polite."
    done = ragaliq("evaluate", write_cases(GOOD), "--rubric", polite, code=2)
    assert "'polite' needs a judge" in done.stderr

    done = ragaliq("estimate", write_cases(GOOD), "--rubric", polite, "--metrics", "faithfulness")
    assert "3 requests" in done.stdout  # claims, verdicts, the rubric


@pytest.mark.parametrize("wrong", ["polite", "=Be polite.", "po lite=Be polite.", "faithfulness=x"])
def test_a_rubric_without_a_name_or_criterion_is_refused(ragaliq, write_cases, wrong):
    done = ragaliq("estimate", write_cases(GOOD), "--rubric", wrong, code=2)
    assert "rubric" in done.stderr.lower()


def test_no_text_holds_for_sinks_whatever_the_environment_says(ragaliq, write_cases):
    options = ("--no-text", "--sink", "sqlite:///live.db")
    ragaliq("evaluate", write_cases(BAD), *options, RAGALIQ_CAPTURE_CONTENT="true")

    [record] = read_records("sqlite:///live.db")
    assert record.results["faithfulness"].score == 0.5
    assert "lanterns" not in record.model_dump_json()


def test_bad_rows_can_be_skipped_and_are_named(ragaliq, write_cases, records):
    done = ragaliq(
        "evaluate",
        write_cases(GOOD, {"query": "q"}),
        "--skip-bad-rows",
        "--max-skipped",
        "1",
        "--out",
        "results.jsonl",
    )

    assert "skipped: row 2: no response" in done.stderr
    assert len(records()) == 1


KONTEXT = {"query": "When?", "kontext": "The shop opens at 9.", "response": "It opens at 9."}
NO_CONTEXT = "no case has any context for faithfulness: "


def test_a_file_without_the_column_a_metric_needs_is_refused_with_the_option(ragaliq, write_cases):
    done = ragaliq("evaluate", write_cases(*[KONTEXT] * 2), *FAITHFULNESS, code=3)
    assert f"{NO_CONTEXT}the columns are 'id', 'query', 'kontext', 'response'" in done.stderr
    assert "Add --field context=COLUMN, or choose other metrics" in done.stderr
    done = ragaliq("evaluate", write_cases(KONTEXT), *FAITHFULNESS, "--field", "context=kontext")
    assert "context" not in done.stderr


@pytest.mark.parametrize("metric", ["correctness", "context_recall"])
def test_a_metric_against_a_reference_refuses_a_file_without_one(ragaliq, write_cases, metric):
    done = ragaliq("evaluate", write_cases(GOOD), "--metrics", f"faithfulness,{metric}", code=3)
    assert f"no case has any expected answer for {metric}: " in done.stderr
    assert "Add --field expected_answer=COLUMN" in done.stderr


def test_correctness_needs_no_context(ragaliq, write_cases):
    row = {"query": "When?", "response": "At 9.", "expected_answer": "At 9."}
    assert "1 of 1" in ragaliq("evaluate", write_cases(row), "--metrics", "correctness").stdout


def test_a_file_of_questions_is_told_how_to_ask_the_application(ragaliq, write_cases):
    done = ragaliq("evaluate", write_cases({"query": "When?"}), code=3)
    assert "--app MODULE:NAME" in done.stderr


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([GOOD | {"context": ""}], f"{NO_CONTEXT}'context' is blank"),
        ([GOOD | {"context": []}, GOOD], ""),
    ],
    ids=["blank throughout", "one is enough"],
)
def test_no_context_in_any_row_is_said(ragaliq, write_cases, rows, said):
    done = ragaliq("evaluate", write_cases(*rows), *FAITHFULNESS)
    assert said in done.stderr
    assert (NO_CONTEXT in done.stderr) == bool(said)
    # Without a metric that goes by it, it is no matter.
    done = ragaliq("evaluate", write_cases(*rows), "--metrics", "relevance")
    assert "context" not in done.stderr

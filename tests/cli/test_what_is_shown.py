"""What a run shows, keeps and asks for: worst answers, shares, figures, input columns, rows."""

import csv
import io
import json
import re
import sys
import xml.etree.ElementTree as ET

import pytest

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
BAD = GOOD | {"response": "The shop opens at 9. Parrots juggle seventeen lanterns."}
WRONG = GOOD | {"response": "The shop opens at 10."}
FAITHFULNESS = ("--metrics", "faithfulness")


def test_the_worst_answers_are_shown_with_row_question_and_reason(ragaliq, write_cases):
    done = ragaliq("evaluate", write_cases(*[GOOD] * 9, BAD, WRONG), *FAITHFULNESS)

    shown = [line.strip() for line in done.stdout.partition("lowest scores")[2].splitlines()]
    assert shown[1:5] == [
        "case-10  When?",
        "faithfulness 0.00 < 0.70: 'The shop opens at 10.' contradicts the context",
        "case-9  When?",
        "faithfulness 0.50 < 0.70: 'Parrots juggle seventeen lanterns.' is not in the context",
    ]
    assert "9 of 11 answers pass every metric" in done.stdout
    assert "The embedded judge compares words" in done.stdout


def test_a_score_just_below_its_threshold_or_goal_does_not_look_equal(ragaliq, write_cases):
    two_of_three = GOOD | {
        "context": ["The shop opens at 9.", "Dogs are welcome."],
        "response": "The shop opens at 9. Dogs are welcome. Parrots juggle seventeen lanterns.",
    }
    limits = ("--threshold", "faithfulness=0.67", "--fail-under", "faithfulness=0.66667")

    done = ragaliq("evaluate", write_cases(two_of_three), *FAITHFULNESS, *limits, code=1)

    assert "faithfulness 0.667 < 0.670: " in done.stdout
    assert "faithfulness has a mean of 0.666667, below 0.66667" in done.stderr


def test_at_most_five_answers_are_shown_and_none_that_passes(ragaliq, write_cases):
    many = ragaliq("evaluate", write_cases(*[WRONG] * 8), *FAITHFULNESS)
    none = ragaliq("evaluate", write_cases(GOOD), *FAITHFULNESS)

    assert many.stdout.count("contradicts the context") == 5
    assert "lowest scores" not in none.stdout


def test_what_the_output_cannot_encode_is_replaced_and_all_files_are_written(
    ragaliq, write_cases, tmp_path, monkeypatch
):
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")  # a pipe on Windows
    monkeypatch.setattr(sys, "stdout", narrow)

    ragaliq(
        "evaluate", write_cases(WRONG | {"query": "\N{GREEK SMALL LETTER PI}?"}), "--out", "p.html"
    )

    narrow.seek(0)
    assert "case-0  ??" in narrow.read()
    assert "\N{GREEK SMALL LETTER PI}" in (tmp_path / "p.html").read_text()


@pytest.mark.parametrize(
    ("asked", "code", "passed"),
    [("0.5 1", 0, "2 of 2"), ("0.51 0.5", 0, "1 of 2"), ("0.51 0.6", 1, "1 of 2")],
)
def test_a_threshold_says_what_passes_and_a_share_how_many_must(
    ragaliq, write_cases, asked, code, passed
):
    threshold, share = asked.split()
    done = ragaliq(
        "evaluate", write_cases(GOOD, BAD), *FAITHFULNESS, "--out", "junit.xml",
        "--threshold", f"faithfulness={threshold}", "--fail-under", share, code=code,
    )  # fmt: skip

    assert f"{passed} answers pass every metric" in done.stdout
    assert ("answers pass, asked for 0.6" in done.stderr) is (code == 1)
    suites = {suite.get("name"): suite for suite in ET.parse("junit.xml").getroot()}
    assert suites["goals"].get("failures") == str(code)


def test_the_figures_are_written_for_machines_and_for_a_jobs_page(ragaliq, write_cases, tmp_path):
    cases = write_cases(GOOD, WRONG | {"response": "<img src=x> opens [here](http://x) at 10."})
    both = ("--summary", "figures.json", "--summary", "figures.md")
    ragaliq("evaluate", cases, *FAITHFULNESS, *both, "--fail-under", "0.9", code=1)

    figures = json.loads((tmp_path / "figures.json").read_text())
    assert (figures["answers"], figures["passed"], figures["pass_share"]) == (2, 1, 0.5)
    metric = figures["metrics"]["faithfulness"]
    assert (metric["mean"], metric["threshold"], metric["scored"]) == (0.5, 0.7, 2)
    assert metric["higher_is_better"]
    assert figures["judge"] == "judge local, uncalibrated"
    [worst] = figures["worst"]
    assert worst["id"] == "case-1"
    assert figures["goals"] == [{"goal": "0.9", "problem": "1 of 2 answers pass, asked for 0.9"}]
    page = (tmp_path / "figures.md").read_text()
    assert "**1 of 2 answers pass every metric.**" in page
    assert "| passed | threshold |\n| ---" in page
    assert "| faithfulness | 0.50 |" in page
    assert "- case-1 (When?): faithfulness 0.00" in page
    assert "<img" not in page
    assert "[here]" not in page


def test_a_table_of_results_keeps_the_inputs_order_rows_columns_and_reasons(ragaliq, tmp_path):
    rows = [
        ["question", "answer", "contexts", "region", "score"],
        *[
            [f"When {n}?", "The shop opens at 9.", "The shop opens at 9.", f"r{n}", n]
            for n in range(30)
        ],
        ["When x?", "", "The shop opens at 9.", "last", 1],
    ]
    with (tmp_path / "cases.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)

    done = ragaliq("evaluate", "cases.csv", "--out", "table.csv", *FAITHFULNESS)

    with (tmp_path / "table.csv").open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["row"] for row in table] == [str(n) for n in range(1, 32)]
    assert [row["region"] for row in table] == [*(f"r{n}" for n in range(30)), "last"]
    assert [row["score"] for row in table[:3]] == ["0", "1", "2"]
    assert json.loads(table[0]["context"]) == ["The shop opens at 9."]
    assert table[0]["faithfulness.reason"]
    assert table[-1]["faithfulness.status"] == "empty_answer"
    assert "\nfaithfulness: 30 scored, 1 empty_answer\n" in done.stdout


def test_rows_of_a_resumed_run_are_those_of_the_file_now(ragaliq, write_cases, records):
    ragaliq("evaluate", write_cases(GOOD, BAD), "--out", "results.jsonl", *FAITHFULNESS)
    cases = write_cases({"id": "new"} | GOOD, GOOD | {"id": "case-0"}, BAD | {"id": "case-1"})

    ragaliq("evaluate", cases, "--out", "results.jsonl", "--resume", *FAITHFULNESS)

    assert {r["case_id"]: r["row"] for r in records()} == {"new": 1, "case-0": 2, "case-1": 3}


class _Input(io.StringIO):
    def __init__(self, data):
        super().__init__()
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize(
    "data",
    [
        b"question,answer\nWhen?,At 9.\n",
        b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\n" + json.dumps(BAD).encode(),
        json.dumps(GOOD).encode(),
        json.dumps([GOOD]).encode(),
        json.dumps({"data": [GOOD]}).encode(),
        json.dumps([GOOD], indent=2).encode(),
    ],
    ids=["table", "lines", "line", "list", "object", "indented"],
)
def test_cases_come_on_standard_input(ragaliq, monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", _Input(data))

    done = ragaliq("evaluate", "-", "--metrics", "relevance")

    assert f"{1 + (b'Parrots' in data)} judged" in done.stdout


def test_several_files_are_one_run(ragaliq, write_cases, records):
    one = write_cases(GOOD, name="one.jsonl")
    other = write_cases(BAD | {"id": "b"}, name="other.jsonl")
    bare = write_cases(name="bare.jsonl")
    bare.write_text(json.dumps(GOOD) + "\n")

    ragaliq("evaluate", one, other, bare, "--out", "results.jsonl", *FAITHFULNESS)

    assert {r["case_id"]: r["row"] for r in records()} == {
        "case-0": 1,
        "b": 2,
        "bare.jsonl row 1": 3,
    }
    twice = ragaliq("evaluate", one, write_cases(GOOD, name="two.jsonl"), code=3)
    assert re.search(r"two\.jsonl, row 1: its id is .* \S+one\.jsonl, row 1;", twice.stderr)


def test_another_encoding_is_read(ragaliq, tmp_path):
    (tmp_path / "cases.csv").write_bytes("question,answer\nOù?,À Genève.\n".encode("cp1252"))

    refused = ragaliq("evaluate", "cases.csv", "--metrics", "relevance", code=3)
    ragaliq("evaluate", "cases.csv", "--metrics", "relevance", "--encoding", "cp1252")

    assert "is not UTF-8; save the file as UTF-8, or name its encoding" in refused.stderr


def test_a_low_relevance_is_shown_with_its_reason(ragaliq, write_cases):
    done = ragaliq(
        "evaluate",
        write_cases(GOOD | {"query": "How heavy is the lamp on my desk?"}),
        "--metrics",
        "relevance",
    )

    assert "< 0.70: The answer has " in done.stdout


def test_junit_keeps_the_order_of_the_input(ragaliq, write_cases):
    long = {**GOOD, "response": "The shop opens at 9. " * 400}
    ragaliq("evaluate", write_cases(long, *[GOOD] * 5), *FAITHFULNESS, "--out", "junit.xml")

    names = [case.get("name") for case in ET.parse("junit.xml").getroot().iter("testcase")]
    assert names == [f"case-{number}" for number in range(6)]

"""`ragaliq cases`: evaluated answers become the cases that each release is evaluated with."""

import json
from pathlib import Path
from unittest.mock import Mock

import pytest

from ragaliq import Monitor, RAGTestCase, evaluate, read_records
from ragaliq.datasets import read_cases

SHOP = ["The shop opens at 9.", "It has two doors."]
GOOD = {"query": "When does it open?", "context": SHOP, "response": "The shop opens at 9."}
BAD = {"query": "How many doors?", "context": SHOP, "response": "The shop has seven doors."}
SILENT = {"query": "Who owns it?", "context": SHOP, "response": "I don't know."}


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store of evaluated answers."""
    monkeypatch.chdir(tmp_path)

    def fill(*cases, captures=True):
        evaluate(
            [RAGTestCase(**{"id": f"shop-{number}", **each}) for number, each in enumerate(cases)],
            metrics=["faithfulness"],
            sinks=["sqlite:///live.db"],
            capture_content=captures,
            pipeline="shop",
        )
        return "sqlite:///live.db"

    return fill


def rows(name="out.jsonl"):
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


@pytest.mark.parametrize(
    ("options", "questions"),
    [
        ([], {"When does it open?", "How many doors?", "Who owns it?"}),
        (["--failed"], {"How many doors?"}),
        (["--random", 2], None),
        (["--stratified", 3], {"When does it open?", "How many doors?", "Who owns it?"}),
        (["--failed", "--random", 5], {"How many doors?"}),
        (["--pipeline", "other"], set()),
        (["--until", "2020-01-01"], set()),
    ],
)
def test_the_answers_that_are_asked_for_become_cases(ragaliq, store, options, questions):
    source = store(GOOD, BAD, SILENT)
    ragaliq("cases", source, "-o", "out.jsonl", *options, code=3 if questions == set() else 0)
    if questions == set():
        assert not Path("out.jsonl").exists()
        return
    found = list(read_cases("out.jsonl"))
    assert len(found) == (2 if questions is None else len(questions))
    assert questions is None or {case.query for case in found} == questions


def test_unsure_answers_are_those_with_a_claim_the_judge_is_unsure_of(ragaliq, store):
    vague = {"query": "How many doors?", "context": SHOP, "response": "Doors are there, two or so."}
    source = store(GOOD, BAD, vague)
    unsure = {
        record.case.query + record.case.response
        for record in read_records(source)
        if any(claim.is_unsure for each in record.results.values() for claim in each.claims)
    }
    ragaliq("cases", source, "-o", "out.jsonl", "--unsure")
    found = {row["query"] + row["response"] for row in rows()}
    assert found == unsure


def test_a_case_holds_all_of_the_answer_and_what_it_scored(ragaliq, store):
    chunk = {"text": SHOP[0], "id": "doc-1", "score": 0.5, "metadata": {"file": "shop.md"}}
    source = store(
        GOOD | {"context": [chunk, SHOP[1]], "tags": ["door"], "metadata": {"lang": "en"}}
    )
    ragaliq("cases", source, "-o", "out.jsonl")
    (case,) = read_cases("out.jsonl")
    (record,) = read_records(source)
    assert case.context == record.case.context
    assert case.tags == ["door"]
    assert case.id == record.run.run_id
    assert case.metadata["lang"] == "en"
    assert case.metadata["earlier_scores"]["faithfulness"] == 1.0
    assert Path("out.jsonl").stat().st_mode & 0o077 == 0


def test_drawn_cases_stand_for_all_answers(ragaliq, store, records):
    source = store(*[GOOD] * 10)
    ragaliq("cases", source, "-o", "out.jsonl", "--random", 5)
    assert [row["sampling_probability"] for row in rows()] == [0.5] * 5
    ragaliq("evaluate", "out.jsonl", "--out", "results.jsonl")
    assert {each["run"]["sampling_probability"] for each in records()} == {0.5}


def test_cases_of_drawn_cases_stand_for_all_answers_too(ragaliq, store):
    source = store(*[GOOD] * 8)
    ragaliq("cases", source, "-o", "out.jsonl", "--random", 4)
    ragaliq("evaluate", "out.jsonl", "--out", "results.jsonl")
    ragaliq("cases", "results.jsonl", "-o", "fewer.jsonl", "--random", 2)
    assert [case.run.sampling_probability for case in read_cases("fewer.jsonl")] == [0.25] * 2


def test_strata_are_weighted_back_to_what_they_are_of_all_answers(ragaliq, store, tmp_path):
    source = store(*[GOOD] * 18, *[BAD] * 2)
    ragaliq("cases", source, "-o", "out.jsonl", "--stratified", 4)
    chances = sorted(row["sampling_probability"] for row in rows())
    assert chances == pytest.approx([2 / 18, 2 / 18, 1.0, 1.0])
    ragaliq("evaluate", "out.jsonl", "--metrics", "faithfulness", "--summary", "summary.json")
    figures = json.loads((tmp_path / "summary.json").read_text())["metrics"]["faithfulness"]
    assert figures["mean"] == pytest.approx(0.9)


def test_the_chance_of_a_live_run_goes_into_the_weight(ragaliq, tmp_path):
    source = f"sqlite:///{tmp_path}/live.db"
    with Monitor(
        judge="local", sinks=[source], capture_content=True, sample_rate=0.5, executor="thread"
    ) as monitor:
        for _ in range(30):
            monitor.submit(RAGTestCase(**GOOD), pipeline="shop")
    ragaliq("cases", source, "-o", "out.jsonl")
    assert {row["sampling_probability"] for row in rows()} == {0.5}


def test_the_same_answers_give_the_same_draw_and_the_latest_evaluation_counts(ragaliq, store):
    source = store(*[GOOD] * 20)
    for name in ("one.jsonl", "two.jsonl"):
        ragaliq("cases", source, "-o", name, "--random", 3)
    assert rows("one.jsonl") == rows("two.jsonl")
    case = RAGTestCase(id="again", **GOOD)
    for answer in ("The shop has seven doors.", "The shop opens at 9."):
        changed = case.model_copy(update={"response": answer})
        evaluate(
            [changed],
            metrics=["faithfulness"],
            sinks=["sqlite:///twice.db"],
            capture_content=True,
        )
    ragaliq("cases", "sqlite:///twice.db", "-o", "three.jsonl")
    assert [row["response"] for row in rows("three.jsonl")] == ["The shop opens at 9."]


def test_a_results_file_is_a_source_and_two_releases_are_compared_over_its_cases(
    ragaliq, write_cases, tmp_path
):
    data = write_cases(*[GOOD] * 6, *[BAD] * 2)
    ragaliq("evaluate", data, "--out", "results.jsonl", "--metrics", "faithfulness")
    ragaliq("cases", "results.jsonl", "-o", "set.jsonl", "--stratified", 4)
    # A release that answers the failed question rightly.
    mended = [
        row | ({"response": "It has two doors."} if row["query"] == BAD["query"] else {})
        for row in rows("set.jsonl")
    ]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mended))
    for name in ("set", "new"):
        metrics = ("--metrics", "faithfulness")
        done = ragaliq("evaluate", f"{name}.jsonl", "--out", f"{name}-results.jsonl", *metrics)
    done = ragaliq("compare", "set-results.jsonl", "new-results.jsonl")
    line = next(line for line in done.stdout.splitlines() if line.startswith("faithfulness"))
    # Weighted: 2 of 8 answers were wrong, though half of the cases were.
    assert line.split()[1:4] == ["0.75", "1.00", "+0.25"]


def test_where_nothing_failed_it_says_so(ragaliq, store):
    done = ragaliq("cases", store(GOOD), "-o", "out.jsonl", "--failed", code=3)
    assert not Path("out.jsonl").exists()
    assert "sqlite:///live.db: 1 answer, of which none fails a threshold" in done.stderr


def test_cases_that_could_not_all_be_written_leave_no_file(ragaliq, store, tmp_path, monkeypatch):
    source = store(GOOD, BAD)
    monkeypatch.setattr("ragaliq.cli.cases.json.dumps", Mock(side_effect=OSError(28, "disk full")))
    done = ragaliq("cases", source, "-o", "out.jsonl", code=3)
    monkeypatch.undo()
    assert "out.jsonl: disk full" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()

"""`--resume` goes by what a case holds, not by its id alone."""

import json

import pytest

ANSWERS = ("The shop opens at 9.", "Parking is free.", "Tickets cost 12 euros.")
CASES = [{"query": "What?", "context": [text], "response": text} for text in ANSWERS]
WRONG = CASES[0] | {"response": "Parrots juggle seventeen lanterns."}


@pytest.fixture
def judge_rows(ragaliq, tmp_path):
    """Runs `evaluate` over rows, in the file `rows.jsonl`."""

    def judge(rows, *arguments):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "rows.jsonl").write_text(text)
        metrics = ("--metrics", "faithfulness")
        return ragaliq("evaluate", "rows.jsonl", *metrics, "--out", "results.jsonl", *arguments)

    return judge


@pytest.fixture
def scores(records):
    def read():
        return {r["run"]["run_id"]: r["results"]["faithfulness"]["score"] for r in records()}

    return read


def named(rows):
    return [{"id": f"case-{number}"} | row for number, row in enumerate(rows)]


@pytest.mark.parametrize(
    "change",
    [
        {"response": "Parrots juggle seventeen lanterns."},
        {"context": ["Parrots."]},
        {"query": "Why?"},
        {"reference": "At 9."},
        {"context": [{"text": ANSWERS[0], "id": "chunk-7"}]},
        {"context": [{"text": ANSWERS[0], "metadata": {"source": "a.md"}}]},
        {"response": [{"type": "text", "text": ANSWERS[0], "citations": [{"title": "a.md"}]}]},
    ],
)
def test_a_corrected_case_is_judged_again(judge_rows, records, change):
    judge_rows(named(CASES))
    before = {r["run"]["run_id"]: r for r in records()}

    done = judge_rows(named([CASES[0] | change, *CASES[1:]]), "--resume")

    assert "1 case changed since: evaluated again" in done.stderr
    after = {r["run"]["run_id"]: r for r in records()}
    assert len(records()) == 3
    assert {name for name in after if after[name] != before[name]} == {"case-0"}


def test_other_labels_do_not_make_another_case(judge_rows, records):
    judge_rows(named(CASES))
    before = records()

    done = judge_rows(named([row | {"tags": ["new"], "note": "x"} for row in CASES]), "--resume")

    assert records() == before
    assert "evaluated again" not in done.stderr


def test_rows_without_ids_keep_their_results_when_one_is_put_before_them(
    judge_rows, records, scores
):
    judge_rows(CASES)
    before = sorted(r["created_at"] for r in records())

    done = judge_rows([WRONG, *CASES], "--resume")

    assert scores() == {"row 1": 0.0, "row 2": 1.0, "row 3": 1.0, "row 4": 1.0}
    assert "3 cases under another id or row now: result kept" in done.stderr
    assert "4 judged" in done.stdout
    # The three were not judged again, and stand under the text they are about.
    assert sorted(r["created_at"] for r in records())[:3] == before
    assert {r["case_id"]: r["case"]["response"] for r in records()} == {
        "row 1": WRONG["response"],
        **{f"row {n}": text for n, text in enumerate(ANSWERS, start=2)},
    }
    assert len({r["evaluation_id"] for r in records()}) == 4


def test_a_moved_result_has_the_ids_a_new_one_would_have(judge_rows, records, tmp_path):
    judge_rows(CASES)
    judge_rows([WRONG, *CASES], "--resume")
    moved = {r["run"]["run_id"]: r["evaluation_id"] for r in records()}
    (tmp_path / "results.jsonl").unlink()

    judge_rows([WRONG, *CASES])

    new = {r["run"]["run_id"]: r["evaluation_id"] for r in records()}
    assert moved == new


def test_repeats_move_with_their_case(judge_rows, records):
    judge_rows(CASES, "--repeats", "2")

    done = judge_rows([WRONG, *CASES], "--repeats", "2", "--resume")

    assert "3 cases under another id or row now" in done.stderr
    assert len({r["run"]["run_id"] for r in records()}) == len(records()) == 8
    assert {r["case_id"]: r["case"]["response"] for r in records()}["row 4"] == ANSWERS[2]


def test_cases_that_are_gone_count_for_nothing_and_stay_in_the_file(judge_rows, records, tmp_path):
    judge_rows(named([CASES[1], WRONG, CASES[2]]))

    done = judge_rows(
        named([CASES[1]]), "--resume", "--fail-under", "faithfulness=0.9", "--out", "table.csv"
    )

    assert "1 of 1" in done.stdout
    assert "1 judged" in done.stdout
    assert "2 results of cases that are gone: not counted" in done.stderr
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 2
    assert len(records()) == 3

    again = judge_rows(named([CASES[1], WRONG, CASES[2]]), "--resume")

    assert "3 judged" in again.stdout
    assert len(records()) == 3


def test_an_id_that_cannot_be_stored_as_it_is_is_judged_once(judge_rows, records):
    rows = [CASES[0] | {"id": "half \ud800"}]
    judge_rows(rows)

    judge_rows(rows, "--resume")

    assert len(records()) == 1

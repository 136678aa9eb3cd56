"""What a command reads is never what it writes."""

from __future__ import annotations

import csv
import json

import pytest

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
FAITHFULNESS = ("--metrics", "faithfulness")


@pytest.fixture
def labels(tmp_path):
    """Labels, which bench takes; calibrate would want more."""
    row = {"claim": "It opens at 9.", "context": ["It opens at 9."], "label": 1}
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row | {"id": str(n)}) + "\n" for n in range(3)))
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as file:
        rows = csv.DictWriter(file, ["query", "context", "response"])
        rows.writeheader()
        rows.writerow(GOOD | {"context": GOOD["context"][0]})
    return path


@pytest.mark.parametrize("name", ["mine.csv", "sub/../mine.csv", "link.csv", "hard.csv"])
def test_the_cases_are_not_overwritten_by_whatever_path(ragaliq, table, tmp_path, name):
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.csv").symlink_to(table)
    (tmp_path / "hard.csv").hardlink_to(table)
    before = table.read_bytes()

    done = ragaliq("evaluate", "mine.csv", "--out", name, *FAITHFULNESS)

    assert done.returncode == 2
    assert "would replace the cases; name another file" in done.stderr
    assert table.read_bytes() == before
    # Nothing was judged, and no results file begun.
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_results_file_is_not_written_over_the_cases(ragaliq, write_cases):
    done = ragaliq("evaluate", write_cases(GOOD), "--out", "cases.jsonl", "--resume")

    assert done.returncode == 2
    assert "--out cases.jsonl would replace the cases" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("judge", "bench", "labels.jsonl", "--journal", "labels.jsonl"), "--journal labels.jsonl"),
        (("label", "labels.jsonl", "-o", "labels.jsonl"), "--out labels.jsonl"),
        (("report", "labels.jsonl", "-o", "labels.jsonl"), "--out labels.jsonl"),
        (("report", "sqlite:///labels.jsonl", "-o", "labels.jsonl"), "--out labels.jsonl"),
    ],
)
def test_no_command_overwrites_what_it_reads(ragaliq, labels, arguments, said):
    before = labels.read_bytes()

    done = ragaliq(*arguments)

    assert done.returncode == 2
    assert f"{said} would replace the " in done.stderr
    assert labels.read_bytes() == before


def test_two_outputs_are_two_files(ragaliq, write_cases):
    done = ragaliq("evaluate", write_cases(GOOD), "--out", "a.csv", "--out", "./a.csv")

    assert done.returncode == 2
    assert "--out a.csv would replace --out" in done.stderr


@pytest.mark.parametrize("name", ["nowhere/x.html", "nowhere/x.jsonl"])
def test_a_folder_that_is_not_there_is_said_and_not_made(ragaliq, write_cases, tmp_path, name):
    done = ragaliq("evaluate", write_cases(GOOD), "--out", name)

    assert done.returncode == 2
    assert f"--out {name}: there is no folder nowhere" in done.stderr
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("ending", ["html", "csv", "xml"])
def test_the_results_file_of_a_form_gets_another_name_than_the_cases(
    ragaliq, write_cases, records, ending, tmp_path
):
    cases = write_cases(GOOD, name="mine.jsonl")
    before = cases.read_bytes()

    done = ragaliq("evaluate", cases, "--out", f"mine.{ending}", *FAITHFULNESS)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"mine.{ending}").exists()
    assert cases.read_bytes() == before
    assert len(records("mine.results.jsonl")) == 1
    resumed = ragaliq("evaluate", cases, "--out", f"mine.{ending}", "--resume", *FAITHFULNESS)
    assert "1 judged" in resumed.stdout


def test_a_file_without_results_is_not_said_to_have_some(ragaliq, write_cases, tmp_path):
    (tmp_path / "notes.jsonl").write_text("my notes\n")

    done = ragaliq("evaluate", write_cases(GOOD), "--out", "notes.html")

    assert done.returncode == 2
    assert "notes.jsonl is not a results file of ragaliq" in done.stderr
    assert "delete" not in done.stderr
    assert "earlier run" not in done.stderr
    assert (tmp_path / "notes.jsonl").read_text() == "my notes\n"


def test_a_report_nobody_named_replaces_nothing(ragaliq, write_cases, tmp_path):
    ragaliq("evaluate", write_cases(GOOD), "--out", "results.jsonl")
    for _ in range(2):  # a report is replaced by the next one
        assert ragaliq("report", "results.jsonl").returncode == 0
    (tmp_path / "report.html").write_text("mine")

    done = ragaliq("report", "results.jsonl")

    assert done.returncode == 2
    assert "report.html is there already and is not a report" in done.stderr
    assert (tmp_path / "report.html").read_text() == "mine"
    assert ragaliq("report", "results.jsonl", "-o", "report.html").returncode == 0
    assert (tmp_path / "report.html").read_text() != "mine"
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.html").mkdir()
    assert "is not a report" in ragaliq("report", "results.jsonl").stderr

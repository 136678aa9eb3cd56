"""What a command reads is never what it writes."""

import pytest

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
FAITHFULNESS = ("--metrics", "faithfulness")


@pytest.mark.parametrize("ending", ["html", "csv", "xml"])
def test_the_results_file_of_a_form_gets_another_name_than_the_cases(
    ragaliq, write_cases, records, ending, tmp_path
):
    cases = write_cases(GOOD, name="mine.jsonl")
    before = cases.read_bytes()

    ragaliq("evaluate", cases, "--out", f"mine.{ending}", *FAITHFULNESS)

    assert (tmp_path / f"mine.{ending}").exists()
    assert cases.read_bytes() == before
    assert len(records("mine.results.jsonl")) == 1
    resumed = ragaliq("evaluate", cases, "--out", f"mine.{ending}", "--resume", *FAITHFULNESS)
    assert "1 judged" in resumed.stdout


def test_a_report_nobody_named_replaces_nothing(ragaliq, write_cases, tmp_path):
    ragaliq("evaluate", write_cases(GOOD), "--out", "results.jsonl")
    for _ in range(2):  # a report is replaced by the next one
        ragaliq("report", "results.jsonl")
    (tmp_path / "report.html").write_text("mine")

    done = ragaliq("report", "results.jsonl", code=2)

    assert "report.html is there already and is not a report" in done.stderr
    assert (tmp_path / "report.html").read_text() == "mine"
    ragaliq("report", "results.jsonl", "-o", "report.html")
    assert (tmp_path / "report.html").read_text() != "mine"
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.html").mkdir()
    assert "is not a report" in ragaliq("report", "results.jsonl", code=2).stderr

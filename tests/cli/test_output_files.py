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

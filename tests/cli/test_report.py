"""`ragaliq report`, and `.html` as an output of `evaluate`."""

from __future__ import annotations

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
BAD = GOOD | {"response": "The shop opens at 9. Parrots juggle seventeen lanterns."}


def test_a_results_file_becomes_a_page(ragaliq, write_cases, tmp_path):
    ragaliq("evaluate", write_cases(GOOD, BAD), "--out", "results.jsonl")
    done = ragaliq("report", "results.jsonl", "-o", "page.html", "--title", "Shop & Co")
    assert done.returncode == 0, done.stderr
    assert "page.html: 2 answers, 2 of them in full" in done.stdout
    page = (tmp_path / "page.html").read_text()
    assert '<h1 dir="auto">Shop &amp; Co</h1>' in page
    assert "seventeen lanterns" in page


def test_evaluate_writes_a_page_at_the_end(ragaliq, write_cases, tmp_path):
    done = ragaliq("evaluate", write_cases(GOOD), "--out", "results.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "results.html").read_text()
    assert "The shop opens at 9." in page
    assert "<dt>Source</dt><dd><bdi>results.jsonl</bdi></dd>" in page


def test_a_time_without_results_is_said(ragaliq, write_cases):
    ragaliq("evaluate", write_cases(GOOD), "--out", "results.jsonl")
    done = ragaliq("report", "results.jsonl", "--until", "2001-01-01")
    assert done.returncode == 3
    assert "holds no results within the time and pipeline asked" in done.stderr


def test_a_page_of_another_kind_is_refused(ragaliq, write_cases, tmp_path):
    ragaliq("evaluate", write_cases(GOOD), "--out", "results.jsonl")
    done = ragaliq("report", "results.jsonl", "-o", "page.pdf")
    assert (done.returncode, (tmp_path / "page.pdf").exists()) == (2, False)
    assert "--out page.pdf: the page goes to an .html file" in done.stderr


def test_a_file_of_something_else_is_refused(ragaliq, write_cases):
    done = ragaliq("report", write_cases(GOOD))
    assert done.returncode == 3
    assert "not a results file" in done.stderr

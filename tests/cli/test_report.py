"""`ragaliq report`, and `.html` as an output of `evaluate`."""

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
BAD = GOOD | {"response": "The shop opens at 9. Parrots juggle seventeen lanterns."}


def test_a_results_file_becomes_a_page(ragaliq, write_cases, tmp_path):
    ragaliq("evaluate", write_cases(GOOD, BAD), "--out", "results.jsonl")
    done = ragaliq("report", "results.jsonl", "-o", "page.html", "--title", "Shop & Co")
    assert "page.html: 2 answers, 2 of them in full" in done.stdout
    page = (tmp_path / "page.html").read_text()
    assert '<h1 dir="auto">Shop &amp; Co</h1>' in page
    assert "seventeen lanterns" in page


def test_evaluate_writes_a_page_at_the_end(ragaliq, write_cases, tmp_path):
    ragaliq("evaluate", write_cases(GOOD), "--out", "results.html")
    page = (tmp_path / "results.html").read_text()
    assert "The shop opens at 9." in page
    assert "<dt>Source</dt><dd><bdi>results.jsonl</bdi></dd>" in page

"""A run in a notebook, as a table, as Markdown and as a page."""

import re
import sys
from types import ModuleType, SimpleNamespace

import pytest

from ragaliq import ConfigurationError, RAGTestCase, evaluate

ANSWERS = {
    "good": "The shop opens at 9.",
    "half": "The shop opens at 9. Parrots juggle <b>lanterns</b>.",
    "wrong": "The shop opens at 10.",
}


@pytest.fixture(scope="module")
def run():
    cases = [
        RAGTestCase(
            id=name,
            query="When <i>exactly</i>?",
            context=["The shop opens at 9."],
            response=answer,
            metadata={"region": name, "query": "mine"},
        )
        for name, answer in ANSWERS.items()
    ]
    return evaluate(cases, metrics=["faithfulness"])


def test_a_run_names_its_metrics_and_none_of_its_texts(run):
    assert repr(run) == "EvaluationRun(3 cases; faithfulness)"


def test_printing_a_run_shows_plain_text(run):
    lines = str(run).splitlines()
    assert lines[:2] == [
        "1 of 3 answers pass every metric",
        "faithfulness: 0.50, too few for an interval; 3 of 3 scored, 1 passed (at least 0.7)",
    ]
    assert lines[2] == "lowest scores:"
    assert lines[3].startswith(
        "  wrong (When <i>exactly</i>?): faithfulness 0.00 < 0.70: 'The shop"
    )


def test_an_answer_of_a_run_is_a_line_without_texts(run):
    assert repr(run[1]) == "Evaluation('half': faithfulness 0.50 (failed))"
    assert repr(run.failures).count("Evaluation(") == 2
    refused = evaluate([RAGTestCase(query="When?", context=["At 9."], response="", id="e")])
    assert repr(refused[0]) == "Evaluation('e': faithfulness empty_answer)"


def test_a_notebook_shows_an_answer_with_each_claim_once(run):
    page = run[1]._repr_html_()
    assert "<b>When &lt;i&gt;exactly&lt;/i&gt;?</b>" in page
    assert "faithfulness 0.50 (failed)" in page
    assert page.count("<tr>") == 2
    assert "<td>NOT_ENOUGH_INFO</td><td>Parrots juggle &lt;b&gt;lanterns&lt;/b&gt;.</td>" in page
    assert "<td>SUPPORTED</td><td>The shop opens at 9.</td><td>The shop opens at 9.</td>" in page
    both = evaluate([run[1].case], metrics=["faithfulness", "hallucination"])
    assert both[0]._repr_html_().count("<tr>") == 2


def test_failures_are_what_does_not_pass_the_lowest_first(run):
    assert [each.case.id for each in run.failures] == ["wrong", "half"]


def test_a_notebook_shows_figures_and_marked_claims_and_no_mark_up_of_the_application(run):
    page = run._repr_html_()
    assert "<p>1 of 3 answers pass every metric</p>" in page
    assert "<td>faithfulness</td><td>0.50</td><td>too few for an interval</td>" in page
    assert "others" not in page
    marked = re.findall(r'<mark title="([\w ]+)"[^>]*>([^<]*)</mark>', page)
    assert ("contradicted", "The shop opens at 10.") in marked
    assert ("supported", "The shop opens at 9.") in marked
    assert ("not enough info", "Parrots juggle &lt;b&gt;lanterns&lt;/b&gt;.") in marked
    assert page.index("opens at 10") < page.index("Parrots")
    assert "<i>" not in page
    assert "good" not in re.sub("<[^>]*>", "", page)


def test_a_notebook_shows_a_column_of_other_statuses_where_there_are_some():
    page = evaluate([RAGTestCase(query="When?", context=["At 9."], response="")])._repr_html_()
    assert "0 of 1 answers pass every metric" in page
    assert page.count("<th>") == page.count("<td>") == 7
    assert "<td>1 empty_answer</td>" in page


def test_a_table_has_a_row_a_case_with_scores_reasons_and_metadata(run):
    table = run.to_pandas()
    assert list(table["id"]) == list(ANSWERS)
    assert list(table["faithfulness.score"]) == [1.0, 0.5, 0.0]
    assert list(table["faithfulness.passed"]) == [True, False, False]
    assert list(table["region"]) == list(ANSWERS)
    assert set(table["query"]) == {"When <i>exactly</i>?"}
    assert set(table["input.query"]) == {"mine"}
    assert table["context"][0] == ["The shop opens at 9."]
    assert table["not_supported"][2] == "CONTRADICTED: The shop opens at 10."


def test_without_pandas_it_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigurationError, match="pip install pandas"):
        run.to_pandas()


def test_the_summary_is_markdown_with_the_lowest_answers(run):
    text = run.summary()
    assert text.startswith("**1 of 3 answers pass every metric.**")
    assert "| faithfulness | 0.50 | too few for an interval |" in text
    assert "- wrong (When &lt;i>exactly&lt;/i>?): faithfulness 0.00 &lt; 0.70" in text


def test_a_report_is_written(run, tmp_path):
    path = run.write_report(tmp_path / "report.html", title="Ours")
    assert path == tmp_path / "report.html"
    assert "Ours" in path.read_text()
    assert "Parrots juggle" in path.read_text()


def test_a_case_without_an_id_is_shown_by_its_question():
    run = evaluate(
        [RAGTestCase(query="When?", context=["The shop opens at 9."], response="At 10.")],
        metrics=["faithfulness"],
    )
    assert "  When?: faithfulness" in str(run)
    assert run[0].case.id not in str(run) + run._repr_html_()


class Notebook(ModuleType):
    """What a kernel shows below a cell, by IPython's own names."""

    def __init__(self, shell):
        super().__init__("IPython")
        self.shell, self.shown = shell, []
        self.get_ipython, self.HTML = lambda: self.shell, lambda text: text

    def display(self, what, *, display_id):
        self.update(what)
        return self

    def update(self, what):
        self.shown.append(what)


@pytest.mark.parametrize(
    ("shell", "options", "last"),
    [
        (SimpleNamespace(kernel=object()), {}, "2 of 2 evaluated"),
        (SimpleNamespace(), {}, None),
        (None, {}, None),
        (SimpleNamespace(kernel=object()), {"on_progress": lambda done, total: None}, None),
    ],
    ids=["notebook", "terminal", "plain Python", "an own bar"],
)
def test_a_notebook_shows_how_far_a_run_is(monkeypatch, shell, options, last):
    notebook = Notebook(shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    cases = [RAGTestCase(query="q", context=["c"], response="c") for _ in range(2)]
    evaluate(cases, metrics=["faithfulness"], **options)
    assert bool(notebook.shown) == bool(last)
    assert last is None or last in notebook.shown[-1]

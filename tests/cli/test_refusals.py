"""What cannot be done is refused in a line that says why, and changes no file."""

import csv
import io
import json
import shutil
import sys

import pytest

from ragaliq import RAGTestCase, evaluate
from ragaliq.cli.app import run

OPENS = "The shop opens at 9."
GOOD = {"query": "When?", "context": [OPENS], "response": OPENS}
BAD = GOOD | {"response": f"{OPENS} Parrots juggle seventeen lanterns."}
LABEL = {"claim": "It opens at 9.", "context": ["It opens at 9."], "label": 1}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with cases, results, a store and labels, good and bad ones."""
    folder = tmp_path_factory.mktemp("prepared")
    rows = [{"id": f"case-{n}"} | case for n, case in enumerate([GOOD, BAD])]
    cut = [{"claim": "a", "context": "b", "label": 1}, {"claim": "a"}]
    for name, written in {
        "cases": rows,
        "bad": [*rows, {"query": "secret"}],
        "no-answer": [{"query": "q"}],
        "labels": [LABEL | {"id": str(n), "label": n % 2} for n in range(60)],
        "bad-label": [LABEL | {"label": "maybe"}],
        "cut": cut,
        "later": [{"ragaliq_results": 9, "settings": {}}],
    }.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in written))
    (folder / "notes.jsonl").write_text("my notes\n")
    (folder / "journal.jsonl").touch()
    (folder / "empty.db").touch()
    with (folder / "mine.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["query", "context", "response"], ["When?", OPENS, OPENS]])
    (folder / "both.csv").write_text("question,query,context,answer\nWhen?,Why?,c,a\n")
    (folder / "link.csv").symlink_to("mine.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in (
            "cases.jsonl --out results.jsonl --metrics faithfulness,relevance",
            "cases.jsonl --out relevance.jsonl --metrics relevance",
            "cases.jsonl --out faithfulness.jsonl --metrics faithfulness",
            "cases.jsonl --out no-text.jsonl --no-text",
        ):
            patch.setattr(sys, "argv", ["ragaliq", "evaluate", *command.split()])
            assert run() == 0
        for name, captures in (("live", True), ("no-text", False)):
            evaluate(
                [RAGTestCase(**row) for row in rows],
                metrics=["faithfulness"],
                sinks=[f"sqlite:///{name}.db"],
                capture_content=captures,
            )
    return folder


@pytest.fixture
def copied(prepared, tmp_path, monkeypatch):
    """A copy of the folder, with an empty standard input."""
    shutil.copytree(prepared, tmp_path, symlinks=True, dirs_exist_ok=True)
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "mine.csv")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    return tmp_path


def held(folder):
    """Every file, without what SQLite puts next to a database while it is read."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if path.suffix not in (".db-shm", ".db-wal")}


# By command: what is asked of it, the exit code, and what it says.
REFUSED = {
    "evaluate": [
        ("cases.jsonl --metrics faithfullness", 2, "no metric 'faithfullness' (did you mean 'fait"),
        ("cases.jsonl --metrics answer_relevancy", 2, "(did you mean 'relevance'?)"),
        ("cases.jsonl --metrics Relevance", 2, "(did you mean 'relevance'?)"),
        ("cases.jsonl --metrics ,", 2, "--metrics: name at least one"),
        ("cases.jsonl --judge gpt", 2, "no judge 'gpt'"),
        ("cases.jsonl --judge claude", 2, "ANTHROPIC_API_KEY"),
        ("cases.jsonl --judge openai", 2, "judge openai needs a model"),
        ("cases.jsonl --judge claude-batch", 2, "goes with --pending"),
        ("cases.jsonl --judge local>openai", 2, "judge openai needs a model"),
        ("cases.jsonl --judge openai:gpt-5-mini", 2, "OPENAI_API_KEY"),
        ("cases.jsonl --judge openai:a --model b", 2, "two models"),
        ("cases.jsonl --judge claude --base-url http://x", 2, "goes with judge openai"),
        ("cases.jsonl --judge Claude", 2, "did you mean 'claude'"),
        ("cases.jsonl --judge local>cluade", 2, "did you mean 'claude'"),
        ("cases.jsonl --judge entailment", 2, "a model's folder or .onnx file"),
        ("cases.jsonl --judge entailment --model nowhere/m.onnx", 2, "no file"),
        (
            "cases.jsonl --threshold context_recall=0.5",
            2,
            "measure it by --metrics faithfulness,context_recall",
        ),
        ("cases.jsonl --threshold faithfulness", 2, "write it as METRIC=SCORE"),
        ("cases.jsonl --threshold faithfulness=2", 2, "threshold must be within [0, 1]"),
        ("cases.jsonl --fail-under relevance=2", 2, "with a mean within [0, 1]"),
        ("cases.jsonl --fail-under hallucination=0.5", 2, "measure it by --metrics faithfulness,"),
        ("cases.jsonl --out results.pdf", 2, "end the name in one of .jsonl, .csv"),
        ("cases.jsonl --summary figures.pdf", 2, "end the name in .json or .md"),
        ("both.csv", 3, "both look like the query; say which: --field query=question (in Python"),
        (f"cases.jsonl --summary {'s' * 250}.json", 2, "json: File name too long"),
        (f"cases.jsonl --out {'s' * 250}.html", 2, "html: File name too long"),
        ("cases.jsonl --resume", 2, "--resume needs --out"),
        ("cases.jsonl --field query", 2, "write it as FIELD=NAME"),
        ("cases.jsonl --field foo=bar", 2, "--field: a case has no field 'foo'; it has id, name,"),
        ("cases.jsonl --field answer=bar", 2, "no field 'answer' (did you mean 'response'?)"),
        ("cases.jsonl --field context=a --field context=b", 2, "--field context: given twice"),
        ("cases.jsonl --concurrency 0", 2, "Invalid value for '--concurrency'"),
        ("cases.jsonl --policy mild", 2, "for '--policy': 'mild' is not one of"),
        ("cases.jsonl --sink arize://localhost", 2, "is one of phoenix, langfuse, mlflow, langsm"),
        ("cases.jsonl --pending", 2, "sqlite:///runs.db"),
        ("sqlite:///live.db --pending --max-cost 1", 2, "--max-cost does not go with --pending"),
        ("sqlite:///live.db --pending --out new.jsonl", 2, "--out does not go with --pending"),
        ("sqlite:///live.db --pending --no-text", 2, "--no-text does not go with --pending"),
        ("sqlite:///missing.db --pending", 2, "there is no such file"),
        ("bad.jsonl --out new.jsonl", 3, "row 3: no response and no context were found"),
        ("results.jsonl --skip-bad-rows", 3, "is a results file, not a file of cases: `ragaliq ca"),
        ("no-answer.jsonl --skip-bad-rows", 3, "no row is left to evaluate"),
        (
            "bad.jsonl no-answer.jsonl --skip-bad-rows --max-skipped 1",
            3,
            "2 rows are skipped, more",
        ),
        ("cases.jsonl cases.jsonl", 3, "cases.jsonl is named twice"),
        ("- -", 2, "-: standard input is named twice"),
        ("-", 3, "ragaliq: standard input: there are no rows"),
        # what is read is never written, nor what another run wrote
        *(
            (f"mine.csv --out {name}", 2, "would replace the cases; name another file")
            for name in ("mine.csv", "./mine.csv", "link.csv", "hard.csv")
        ),
        ("cases.jsonl --out cases.jsonl --resume", 2, "--out cases.jsonl would replace the cases"),
        ("cases.jsonl --out a.csv --out ./a.csv", 2, "--out a.csv would replace --out"),
        ("cases.jsonl --out nowhere/x.html", 2, "nowhere/x.html: there is no folder nowhere"),
        ("cases.jsonl --out nowhere/x.jsonl", 2, "nowhere/x.jsonl: there is no folder nowhere"),
        ("cases.jsonl --out results.jsonl", 2, "already holds the results of an earlier run"),
        ("cases.jsonl --out notes.html", 2, "notes.jsonl is not a results file of ragaliq"),
        ("cases.jsonl --out notes.jsonl --resume", 3, "is not a results file of ragaliq"),
    ],
    # a file with faithfulness and relevance is continued under the same settings
    "evaluate cases.jsonl --out results.jsonl --resume": [
        ("--policy ragas", 3, "policy was live and is now ragas"),
        ("--metrics faithfulness", 3, "metrics was faithfulness 0.7, relevance 0.7 and is now"),
        ("--metrics relevance,hallucination,chunk_utility", 3, "faithfulness 0.7"),
        ("--metrics hallucination", 3, "to add a metric name these too: faithfulness, relevance"),
        ("--metrics faithfulness,relevance --threshold relevance=0.9", 3, "relevance 0.9"),
    ],
    "cases": [
        ("live.db -o out.csv", 2, "cases go to a .jsonl file"),
        ("live.db -o out.jsonl --random 1 --stratified 2", 2, "exclude each other"),
        ("live.db -o out.jsonl --stratified 1", 2, "there are 2 strata"),
        ("live.db -o notes.jsonl", 2, "exists; delete it, or name another file"),
        (
            "no-text.db -o out.jsonl",
            3,
            "it holds no texts of its 2 answers; evaluate with capture_content=True or RAGALIQ",
        ),
        ("empty.db -o out.jsonl", 3, "empty.db"),
        ("no-answer.jsonl -o out.jsonl", 3, "no-answer.jsonl"),
    ],
    "compare": [
        ("relevance.jsonl faithfulness.jsonl", 3, "no metric with a score for the same case"),
        ("notes.jsonl notes.jsonl", 3, "notes.jsonl"),
        ("journal.jsonl journal.jsonl", 3, "journal.jsonl"),
        ("later.jsonl later.jsonl", 3, "later"),
        ("results.jsonl results.jsonl -o page.pdf", 2, ".json, .md or .xml"),
        ("results.jsonl results.jsonl -o results.jsonl", 2, "results.jsonl"),
    ],
    "label": [
        ("", 2, "name a store, or a results file"),
        ("results.jsonl", 2, "--out is missing: name the file for the labels"),
        ("results.jsonl -o labels.csv", 2, "labels go to a .jsonl file"),
        ("live.db -o labels.csv", 2, "labels go to a .jsonl file"),
        ("results.jsonl --compare a b", 2, "two files of labels and nothing else"),
        ("results.jsonl -o results.jsonl", 2, "would replace the results"),
        ("results.jsonl -o nowhere/labels.jsonl", 2, "there is no folder nowhere"),
        ("results.jsonl -o cut.jsonl", 3, "cut.jsonl, line "),
        ("--compare missing.jsonl labels.jsonl", 3, "no such file"),
        ("no-text.jsonl -o new.jsonl", 3, "it holds no texts; evaluate without --no-text"),
        ("no-text.db", 3, "it holds no texts of its 2 answers; store them by capture_content=True"),
        ("missing.db", 3, "missing.db: No such file"),
        ("x" * 300, 3, "File name too long"),
    ],
    "quality": [
        ("missing.db", 3, "there is no store here"),
        ("notes.jsonl", 3, "notes.jsonl is not a store; write one with"),
        ("live.db --labels none.jsonl", 3, "none.jsonl: there is no such file"),
        ("live.db --judge local", 2, "need --rejudge"),
        ("live.db --out q.txt", 2, "name a .json file"),
        ("live.db --plot q.png", 2, "name a .svg file"),
        ("live.db --metric nonesuch", 3, "holds no scores within the time"),
        ("x" * 300, 3, "File name too long"),
    ],
    "report": [
        ("results.jsonl -o page.html --until 2001-01-01", 3, "no results within the time"),
        ("results.jsonl -o page.pdf", 2, "--out page.pdf: the page goes to an .html file"),
        ("cases.jsonl -o page.html", 3, "not a results file"),
        ("labels.jsonl -o labels.jsonl", 2, "--out labels.jsonl would replace the "),
        ("sqlite:///labels.jsonl -o labels.jsonl", 2, "--out labels.jsonl would replace the "),
    ],
    "traces explain": [
        ("cases.jsonl", 3, "cases.jsonl: no span of a trace says that it is a chain, a retriever"),
    ],
    "worker": [
        ("--queue mine dead-letters drop --all", 2, "--queue has no effect before dead-letters"),
        ("--heartbeat beat health", 2, "--heartbeat has no effect before health; write it after"),
    ],
    "judge bench": [
        ("labels.jsonl --max-cost 1", 2, "--max-cost needs --journal"),
        ("labels.jsonl --calibration missing.json", 3, "missing.json: No such file"),
        ("labels.jsonl --judge nobody", 2, "no judge 'nobody'"),
        ("labels.jsonl --journal labels.jsonl", 2, "--journal labels.jsonl would replace the "),
        ("bad-label.jsonl", 3, "bad-label.jsonl, row 1: field 'label' is none of"),
    ],
    "calibrate": [
        ("labels.jsonl -o cal.json", 3, "there are 60 labels, 30 of them supported; at least 100"),
    ],
    **{
        command: [
            ("labels.jsonl --out labels.jsonl", 2, "labels.jsonl would replace the labels"),
            ("--journal journal.jsonl labels.jsonl --out journal.jsonl", 2, "would replace --jour"),
            ("labels.jsonl --out .", 2, "is a folder"),
            ("labels.jsonl --out nowhere/b.json", 2, "there is no folder nowhere"),
        ]
        for command in ("judge  bench", " calibrate")
    },
}


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [(f"{command} {rest}", *row) for command, rows in REFUSED.items() for rest, *row in rows],
    ids=lambda value: value[:60] if isinstance(value, str) else None,
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(ragaliq, copied, command, code, said):
    before = held(copied)
    done = ragaliq(*command.split(), code=code)
    assert said in done.stderr
    assert "secret" not in done.stderr
    assert done.stdout == ""
    assert held(copied) == before

"""Files that only a program writes: nested without end, or with scores that are no numbers."""

import shutil

import pytest

from ragaliq.records.results_file import HEADER


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with a file of cases; its results and their store are made on the first use."""
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture
def folder(prepared, ragaliq, write_cases, tmp_path):
    """Cases, their results and a store of them."""
    cases = write_cases(
        {"query": "When?", "context": ["It opens at 9."], "response": "It opens at 9."}
    )
    if not (prepared / "live.db").exists():
        ragaliq("evaluate", cases, "-o", "results.jsonl", "--sink", "sqlite:///live.db")
        shutil.copytree(tmp_path, prepared, dirs_exist_ok=True)
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize("depth", [100_000])
@pytest.mark.parametrize(
    ("command", "start"),
    [
        ("report {} --out page.html", f'{{"{HEADER}": 1, "settings": '),
        ("compare {} results.jsonl", f'{{"{HEADER}": 1, "settings": '),
        ("evaluate cases.jsonl --out {}", f'{{"{HEADER}": 1, "settings": '),
        ("judge bench labels.jsonl --journal {}", ""),
        ("quality live.db --labels {}", '{"label": '),
    ],
)
def test_nested_data_of_any_depth_is_not_what_ragaliq_writes(
    ragaliq, folder, command, start, depth
):
    (folder / "labels.jsonl").write_text('{"claim": "a", "context": ["b"], "label": 1}\n' * 2)
    deep = folder / "deep.jsonl"
    deep.write_text(start + "[" * depth + "]" * depth + "}\n" + "x")

    code = 2 if command.startswith("evaluate") else 3
    done = ragaliq(*command.format("deep.jsonl").split(), code=code)

    assert "deep.jsonl" in done.stderr


def test_a_results_file_whose_score_is_no_number_still_makes_a_report(ragaliq, folder):
    results = folder / "results.jsonl"
    results.write_text(results.read_text().replace('"score":1.0,"passed"', '"score":NaN,"passed"'))
    assert "NaN" in results.read_text()

    ragaliq("report", "results.jsonl", "--out", "page.html")

    assert "NaN," not in (folder / "page.html").read_text()

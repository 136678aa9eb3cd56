"""Results files: appended, never rewritten, continued under the same settings only."""

import resource
from contextlib import contextmanager

import pytest

from ragaliq import RAGTestCase, RunInfo
from ragaliq.core.results import Evaluation, EvaluationResult
from ragaliq.errors import DatasetError
from ragaliq.records import evaluation_record
from ragaliq.records.results_file import ResultsFile, read_results_file
from ragaliq.telemetry.content import ContentPolicy

SETTINGS = {"judge": "local", "metrics": {"faithfulness": 0.7}}


def record(name, *metrics):
    case = RAGTestCase(id=name, query="Q", context=["C"], response="A")
    results = {
        each: EvaluationResult(evaluator_name=each, score=1.0, passed=True)
        for each in metrics or ("faithfulness",)
    }
    in_run = case.model_copy(update={"run": RunInfo(run_id=name)})
    content = ContentPolicy(on_spans=True, on_events=True)
    evaluation = Evaluation(case=in_run, results=results)
    return evaluation_record(evaluation, content=content)


@pytest.mark.parametrize("cut", [1, 10, 300])
def test_a_line_that_was_cut_short_is_dropped_when_the_file_is_continued(tmp_path, cut):
    path = tmp_path / "results.jsonl"
    with ResultsFile(path, settings=SETTINGS) as file:
        file.append(record("one"))
        file.append(record("two"))
    path.write_bytes(path.read_bytes()[:-cut])

    assert [each.case_id for each in read_results_file(path)] == ["one"]
    with ResultsFile(path, settings=SETTINGS) as file:
        file.append(record("three"))
    assert [each.case_id for each in read_results_file(path)] == ["one", "three"]


def test_a_broken_line_is_named_without_its_text(tmp_path):
    path = tmp_path / "results.jsonl"
    ResultsFile(path, settings=SETTINGS).close()
    with path.open("a") as file:
        file.write('{"case_id": "secret"}\n')

    with pytest.raises(DatasetError, match="line 2: ") as refused:
        list(read_results_file(path))
    assert "secret" not in str(refused.value)


def test_a_file_that_cannot_be_written_is_a_clear_error(tmp_path):
    with pytest.raises(DatasetError, match="Is a directory"):
        ResultsFile(tmp_path, settings=SETTINGS)
    with pytest.raises(DatasetError, match="No such file"):
        list(read_results_file(tmp_path / "nowhere"))


@contextmanager
def room_for(size):
    """Inside, no file may grow beyond `size` bytes: a write takes what fits, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_whole_lines_and_the_next_result_one_of_its_own(tmp_path):
    path = tmp_path / "results.jsonl"
    with ResultsFile(path, settings=SETTINGS) as file:
        file.append(record("one"))
        with room_for(path.stat().st_size + 100), pytest.raises(DatasetError, match="too large"):
            file.append(record("two"))
        assert path.read_bytes().endswith(b"\n")
        file.append(record("three"))

    assert [each.case_id for each in read_results_file(path)] == ["one", "three"]


def test_a_file_has_one_writer_at_a_time(tmp_path):
    path = tmp_path / "results.jsonl"
    with ResultsFile(path, settings=SETTINGS) as file:
        file.append(record("one"))
        with pytest.raises(DatasetError, match="another run is writing"):
            ResultsFile(path, settings=SETTINGS)
        # What was taken out is gone from a new file, which is held as the old one was.
        file.rewrite(lambda each: None if each.case_id == "one" else each)
        with pytest.raises(DatasetError, match="another run is writing"):
            ResultsFile(path, settings=SETTINGS)
        file.append(record("two"))

    assert [each.case_id for each in read_results_file(path)] == ["two"]
    assert [each.name for each in tmp_path.iterdir()] == ["results.jsonl"]


def test_a_rewritten_file_keeps_its_place_behind_a_link_and_who_may_read_it(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    path, link = tmp_path / "elsewhere" / "results.jsonl", tmp_path / "results.jsonl"
    link.symlink_to(path)
    with ResultsFile(link, settings=SETTINGS) as file:
        file.append(record("one"))
        path.chmod(0o640)
        file.rewrite(lambda _: None)
        file.append(record("two"))
    assert link.is_symlink()
    assert [each.case_id for each in read_results_file(path)] == ["two"]
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in path.parent.iterdir()] == ["results.jsonl"]


def test_a_file_that_is_replaced_before_it_is_held_is_not_written(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    ResultsFile(path, settings=SETTINGS).close()
    held = path.read_bytes()

    def replaced_meanwhile(*_):
        (tmp_path / "new").write_bytes(held)
        (tmp_path / "new").replace(path)

    monkeypatch.setattr("fcntl.flock", replaced_meanwhile)
    with pytest.raises(DatasetError, match="try again"):
        ResultsFile(path, settings=SETTINGS)
    assert path.read_bytes() == held


def test_readers_see_each_run_once_while_metrics_are_added(tmp_path):
    path = tmp_path / "results.jsonl"
    with ResultsFile(path, settings=SETTINGS) as file:
        file.append(record("one"))
        file.append(record("two"))
    both = SETTINGS | {"metrics": {"faithfulness": 0.7, "relevance": 0.7}}
    file = ResultsFile(path, settings=both)
    file.append(record("one", "faithfulness", "relevance"))
    # As after a kill: nothing is closed.
    seen = [(each.case_id, list(each.results)) for each in read_results_file(path)]
    assert seen == [("two", ["faithfulness"]), ("one", ["faithfulness", "relevance"])]
    file.close()
    assert path.read_text().count("\n") == 3

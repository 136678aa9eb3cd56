"""A case carries the run that gave its answer, from the row it is read from to its results."""

import asyncio
import json
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from ragaliq import DatasetError, RAGTestCase, RunInfo, Scorer, SpanTarget, evaluate
from ragaliq.datasets import read_cases
from ragaliq.scoring.execution import case_data
from ragaliq.testing import ScriptedJudge

TARGET = SpanTarget(trace_id="a" * 32, span_id="b" * 16)
RUN = RunInfo(run_id="r1", pipeline="support", target=TARGET, session_id="s", ended_at=5.0)
ROW = {"query": "Open?", "context": ["It opens at 9."], "response": "It opens at 9."}


@pytest.fixture
def read(tmp_path):
    """Reads one row that has these values too."""

    def read(**more):
        path = tmp_path / "row.jsonl"
        path.write_text(json.dumps(ROW | more))
        (case,) = read_cases(path)
        return case

    return read


@pytest.fixture
def sink():
    """Keeps the records that it is given."""
    kept = SimpleNamespace(name="kept", records=[], aclose=AsyncMock())

    async def write(records):
        kept.records += records

    kept.write = write
    return kept


def scored(*cases, **options):
    return evaluate(cases, judge=ScriptedJudge(), metrics=["faithfulness"], **options)


def test_a_case_that_is_written_and_read_again_has_its_run(read):
    case = RAGTestCase(id="c", **ROW, run=RUN)
    assert read(**json.loads(case.model_dump_json(exclude_defaults=True))) == case
    assert read(run=RUN.model_dump_json()).run == RUN


@pytest.mark.parametrize("held", ["nightly", 7, {"id": "r1"}, {"run_id": "r1", "dataset": "faq"}])
def test_another_tools_column_of_that_name_is_metadata(read, held):
    case = read(run=held)
    assert (case.run, case.metadata) == (None, {"run": held})


def test_a_run_inside_metadata_is_metadata(read):
    case = read(metadata={"run": RUN.model_dump(mode="json")})
    assert (case.run, case.metadata["run"]["run_id"]) == (None, "r1")


def test_empty_metadata_of_any_kind_are_none(read):
    assert read(metadata=[]).metadata == read(metadata="").metadata == {}


def test_the_metrics_that_sampling_chose_for_a_live_run_limit_no_evaluation_offline():
    run = RUN.model_copy(update={"metric_probabilities": {"answer_relevance": 0.5}})
    (evaluation,) = scored(RAGTestCase(**ROW, run=run))
    assert set(evaluation.results) == {"faithfulness"}


@pytest.mark.parametrize("place", ["column", "metadata"])
def test_a_row_stands_for_as_many_answers_as_its_chance_says(read, place):
    chance = {"sampling_probability": 0.25}
    case = read(**(chance if place == "column" else {"metadata": chance}))
    (result,) = scored(case, pipeline="faq")
    assert (result.run.sampling_probability, result.run.weight("faithfulness")) == (0.25, 4.0)
    assert (result.run.run_id, result.pipeline, result.case.metadata) == (case.id, "faq", {})


@pytest.mark.parametrize("chance", ["often", 0, 1.5, "-0.1"])
def test_a_chance_that_is_none_is_refused(read, chance):
    with pytest.raises(DatasetError, match=r"row 1: field 'sampling_probability' must be above 0"):
        read(sampling_probability=chance)


@pytest.mark.parametrize("chance", ["", None, "nan"])
def test_an_empty_chance_is_none(read, chance):
    assert read(sampling_probability=chance).run is None


def test_an_applications_questions_keep_the_weights_of_their_rows(read):
    question = read(sampling_probability=0.5)
    (result,) = evaluate(
        lambda text: RAGTestCase(**ROW | {"query": text}),
        [question],
        judge=ScriptedJudge(),
        metrics=["faithfulness"],
    )
    assert result.run.sampling_probability == 0.5


def test_metadata_called_trace_mean_nothing():
    case = RAGTestCase(**ROW, metadata={"trace": {"target": TARGET.model_dump()}})
    (result,) = scored(case)
    assert (result.target, result.case.metadata) == (None, case.metadata)


def test_results_refer_to_the_cases_run_by_the_cases_id():
    case = RAGTestCase(id="c", **ROW, run=RUN)
    first, second = scored(case, repeats=2, pipeline="file")
    assert first.run == RUN.model_copy(update={"run_id": "c"})
    assert second.run == RUN.model_copy(update={"run_id": "c#2"})
    assert first.case == case.model_copy(update={"run": first.run})


def test_an_evaluated_case_is_evaluated_again_as_a_later_run():
    (first,) = scored(RAGTestCase(id="c", **ROW), pipeline="old")
    (second,) = scored(first.case, pipeline="new")
    assert (second.run.run_id, second.pipeline) == ("c", "new")
    assert second.run.ended_at > first.run.ended_at


async def test_a_case_without_a_run_is_scored_as_one_with_its_id(sink):
    case = RAGTestCase(id="c", **ROW)
    async with Scorer(ScriptedJudge(), ["faithfulness"], sinks=[sink]) as scorer:
        evaluation = await scorer.score(case)
    assert evaluation.run == RunInfo(run_id="c")
    (record,) = sink.records
    assert record.run == evaluation.run


def test_a_child_process_is_not_sent_the_run():
    assert "run" not in case_data(RAGTestCase(**ROW, run=RUN))


def test_a_record_has_the_run_once(sink):
    scored(RAGTestCase(id="c", **ROW, run=RUN), sinks=[sink], capture_content=True)
    (record,) = sink.records
    assert (record.run.target, record.case.run) == (TARGET, None)


def test_rows_of_two_files_without_ids_are_two_records(sink, read, tmp_path):
    read()
    (tmp_path / "row.jsonl").rename(tmp_path / "other.jsonl")
    for name, case in (
        ("row", read()),
        ("other", next(iter(read_cases(tmp_path / "other.jsonl")))),
    ):
        asyncio.run(stored(case, name, sink))
    assert len({record.evaluation_id for record in sink.records}) == 2


async def stored(case, pipeline, sink):
    async with Scorer(ScriptedJudge(), ["faithfulness"], sinks=[sink]) as scorer:
        async for _ in scorer.stream([case], pipeline=pipeline):
            pass

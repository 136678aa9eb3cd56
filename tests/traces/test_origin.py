"""Where a case came from travels with it, and nobody else's metadata is taken for it."""

import pytest
from hand_written import QUESTION, chain, only, retriever

from ragaliq import RAGTestCase, evaluate
from ragaliq.core.origin import run_of
from ragaliq.testing import ScriptedJudge
from ragaliq.traces.cases import case_of

TARGET = {"trace_id": "a" * 32, "span_id": "b" * 16}


def case(**metadata):
    return RAGTestCase(query="Q?", response="A.", metadata=metadata)


def traced(**more):
    root = chain(name="support", **more)
    return only([root, retriever(root)])


def test_a_case_from_a_trace_names_its_span():
    found = traced()
    written = case_of(found).model_dump_json()
    for case in (case_of(found), RAGTestCase.model_validate_json(written)):
        run = run_of(case, run_id="r1", pipeline="file")
        assert run.target == found.target
        assert (run.run_id, run.pipeline, run.ended_at) == ("r1", "support", 1e-7)


@pytest.mark.parametrize(
    "held",
    [
        "a trace of jam",
        {},
        {"target": {"trace_id": "x", "span_id": "y"}},
        {"target": None},
        {"target": TARGET, "more": 1},
        {"target": TARGET, "framework": "haystack"},
    ],
)
def test_other_metadata_of_that_name_means_nothing(held):
    run = run_of(case(trace=held), run_id="r1", pipeline="file", ended_at=5.0)
    assert (run.target, run.pipeline, run.ended_at) == (None, "file", 5.0)


def test_a_run_without_a_name_has_the_data_set_s():
    run = run_of(case(trace={"target": TARGET, "pipeline": ""}), run_id="r1", pipeline="file")
    assert (run.target.span_id, run.pipeline) == (TARGET["span_id"], "file")


def test_sinks_get_the_original_span(sink):
    found = traced()
    evaluate([case_of(found)], judge=ScriptedJudge(), sinks=[sink], metrics=["faithfulness"])
    (record,) = sink.records
    assert record.run.target == found.target
    assert record.run.run_id == found.id
    assert found.log.query == QUESTION

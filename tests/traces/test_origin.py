"""A case from a trace names the span and the run that it came from."""

from hand_written import QUESTION, chain, only, retriever

from ragaliq import RAGTestCase, evaluate
from ragaliq.testing import ScriptedJudge
from ragaliq.traces.cases import case_of


def traced(**more):
    root = chain(name="support", **more)
    return only([root, retriever(root)])


def test_a_case_from_a_trace_names_its_span():
    found = traced()
    written = case_of(found).model_dump_json()
    for case in (case_of(found), RAGTestCase.model_validate_json(written)):
        run = case.run
        assert run.target == found.target
        assert (run.run_id, run.pipeline, run.ended_at) == (found.run.run_id, "support", 1e-7)
        assert case.metadata == {}


def test_sinks_get_the_original_span(sink):
    found = traced()
    evaluate([case_of(found)], judge=ScriptedJudge(), sinks=[sink], metrics=["faithfulness"])
    (record,) = sink.records
    assert record.run.target == found.target
    assert record.run.run_id == found.run.run_id
    assert found.log.query == QUESTION

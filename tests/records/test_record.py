import json

import pytest

from ragaliq import (
    Citation,
    ClaimDetail,
    Evaluation,
    EvaluationResult,
    RAGTestCase,
    RunInfo,
    Turn,
)
from ragaliq.core.results import Status
from ragaliq.core.test_case import CaseSources
from ragaliq.records import EvaluationRecord, evaluation_record
from ragaliq.telemetry.content import ContentPolicy

SECRETS = ("zebra", "flies", "striped")


def test_without_content_capture_no_text_is_in_a_record(record_of, result_of):
    failed = result_of(
        None, name="relevance", status=Status.JUDGE_ERROR, error="zebra", error_type="E"
    )
    text = record_of(results=[result_of(), failed]).model_dump_json().lower()
    assert [secret for secret in SECRETS if secret in text] == []


NAMES = {
    *("evaluator_name", "judge", "model", "judge_kind", "fingerprint", "calibration"),
    *("decided_by",),
}
"""The fields of results and claims whose strings are names."""


def test_of_the_strings_of_a_result_only_names_are_kept_without_content_capture(record_of):
    def filled(kind, **others):
        strings = {
            name: "zebra"
            for name, field in kind.model_fields.items()
            if field.annotation in (str, str | None)
        }
        return kind(**{**strings, **others})

    claim = filled(ClaimDetail, verdict="SUPPORTED")
    result = filled(EvaluationResult, score=1.0, passed=True, claims=(claim,))
    (stored,) = record_of(results=[result]).results.values()
    for each in (stored, *stored.claims):
        held = {
            name
            for name, value in each.model_dump(exclude={"claims"}).items()
            if "zebra" in str(value)
        }
        assert held <= NAMES


def test_without_content_capture_verdicts_numbers_and_places_are_kept(record_of):
    record = record_of()
    assert record.case is None
    (metric,) = record.results.values()
    assert (metric.score, metric.passed, metric.status) == (0.5, False, "scored")
    assert [claim.verdict for claim in metric.claims] == ["SUPPORTED", "CONTRADICTED"]
    assert metric.claims[0].answer_span == (0, 21)
    assert metric.claims[0].evidence_spans == ((0, 13, 27),)
    assert record.usage.cost_usd == 0.001


def test_with_content_capture_the_texts_are_kept(record_of, captured, case):
    record = record_of(content=captured)
    assert (record.case.query, record.case.response) == (case.query, case.response)
    assert record.case.context_texts == case.context_texts
    claim = record.results["faithfulness"].claims[0]
    assert claim.claim == "The zebra is striped."
    assert record.case.response[slice(*claim.answer_span)] == claim.claim
    assert (claim.evidence, claim.reason) == ("striped animal", "The zebra chunk says so.")


def test_signs_that_receivers_refuse_are_replaced_and_ranges_behind_them_hold(
    run_of, result_of, captured
):
    chunk, answer = "A zebra is a striped animal.", "The zebra is striped. It flies."
    case = RAGTestCase(
        query="\0",
        context=[chunk.replace(" ", "\0")],
        response=answer.replace("zebra", "zebr\ud800"),
        run=run_of(pipeline="a\0b"),
    )
    result = result_of().model_copy(update={"reasoning": "because\0"})
    evaluation = Evaluation(case=case, results={"f": result})
    record = evaluation_record(evaluation, content=captured)
    text = record.model_dump_json()
    assert "\\u0000" not in text
    first, second = record.results["faithfulness"].claims
    assert (first.answer_span, second.answer_span) == ((0, 21), (22, 31))
    assert first.evidence_spans == ((0, 13, 27),)


@pytest.mark.parametrize("on", [{"on_spans": True}, {"on_events": True}])
def test_content_meant_for_one_signal_alone_does_not_reach_sinks(record_of, on):
    assert record_of(content=ContentPolicy(**on)).case is None


def test_the_redactor_sees_every_text_before_it_is_cut(case, result_of, captured):
    seen = {}

    def redact(text, kind):
        seen.setdefault(kind, []).append(len(text))
        return text.replace("secret", "■")

    long = RAGTestCase(query="secret " * 9000, context=["c" * 50_000], response="r" * 50_000)
    evaluation = Evaluation(case=long, results={"faithfulness": result_of()})
    record = evaluation_record(
        evaluation, content=ContentPolicy(on_spans=True, on_events=True, redact=redact)
    )
    assert set(seen) == {"question", "answer", "chunk", "claim", "evidence", "explanation"}
    assert max(seen["chunk"]) == 50_000
    assert "secret" not in record.model_dump_json()
    assert len(record.case.response) < 50_000


def test_a_place_that_redaction_has_moved_is_left_out(record_of):
    def redact(text, kind):
        return text.replace("The zebra", "It") if kind == "answer" else text

    content = ContentPolicy(on_spans=True, on_events=True, redact=redact)
    claims = record_of(content=content).results["faithfulness"].claims
    assert [claim.answer_span for claim in claims] == [None, None]
    assert claims[0].evidence_spans == ((0, 13, 27),)


def test_a_text_whose_redactor_fails_is_dropped(record_of):
    def redact(text, kind):
        raise ValueError(text)

    record = record_of(content=ContentPolicy(on_spans=True, on_events=True, redact=redact))
    text = record.model_dump_json().lower()
    assert [secret for secret in SECRETS if secret in text] == []


def test_the_same_job_gives_the_same_ids_and_another_run_or_judge_others(record_of, result_of):
    first, again = record_of(), record_of()
    assert first.evaluation_id == again.evaluation_id
    assert first.metric_id("faithfulness") == again.metric_id("faithfulness")
    other_judge = [result_of().model_copy(update={"judge": "claude"})]
    others = [record_of(1), record_of(ended_at=5.0), record_of(results=other_judge)]
    assert len({first.evaluation_id, *(other.evaluation_id for other in others)}) == 4


def test_a_failure_and_an_undefined_score_have_no_score(record_of, result_of):
    zero_for_failure = EvaluationResult(
        evaluator_name="a", score=0.0, passed=False, status=Status.JUDGE_REFUSED
    )
    undefined = EvaluationResult(
        evaluator_name="b", score=float("nan"), passed=False, status=Status.NO_CLAIMS
    )
    record = record_of(results=[zero_for_failure, undefined])
    assert [(each.score, each.passed) for each in record.results.values()] == [(None, None)] * 2


@pytest.mark.parametrize("content", [ContentPolicy(), ContentPolicy(on_spans=True, on_events=True)])
def test_a_record_survives_json(record_of, content):
    record = record_of(content=content)
    text = record.model_dump_json()
    assert EvaluationRecord.model_validate_json(text) == record
    assert json.loads(text)["schema_version"] == 1


def test_a_record_keeps_each_field_of_a_case_but_those_that_are_left_out(captured):
    case = RAGTestCase(
        name="n",
        query="q",
        context=["c"],
        response="r",
        prompt_context="p",
        history=[Turn(role="user", text="t")],
        citations=[Citation(start=0, end=1)],
        expected_answer="e",
        expected_facts=["f"],
        tags=["t"],
        metadata={"m": 1},
        sources=CaseSources(context="prompt"),
        run=RunInfo(run_id="r"),
    )
    fields = set(RAGTestCase.model_fields)
    assert case.model_fields_set | {"id"} == fields
    stored = evaluation_record(Evaluation(case=case, results={}), content=captured).case
    kept = {name for name, value in stored if value}
    assert fields - kept == {"citations", "expected_answer", "expected_facts", "run"}


def test_every_name_of_a_run_is_cut(record_of):
    long = "n" * 5000
    kinds = RunInfo.model_fields.items()
    names = {name: long for name, field in kinds if field.annotation in (str, str | None)}
    names |= {"sampling_rules": (long,), "metric_probabilities": {long: 0.5}}
    assert {"release", "model", "session_id"} <= names.keys()
    run = record_of(**names).run
    assert len(run.model_dump_json()) < 300 * len(names)

"""Claims that no chunk supports are checked against the rest of the prompt."""

import pytest

from ragaliq import FaithfulnessEvaluator, RAGTestCase, ScoringPolicy, evaluate, read_records
from ragaliq.datasets import read_cases

CHUNK = "Refunds are paid within five working days."
PROMPT = f"Answer briefly.\n{CHUNK}\nThe customer's parcel was lost in Bergen on Monday."
ANSWER = f"{CHUNK} The parcel was lost in Bergen on Monday. Shops sell umbrellas."


def case(**fields):
    fields = {"context": [CHUNK], "prompt_context": PROMPT, "response": ANSWER} | fields
    return RAGTestCase(query="Where is my money?", **fields)


def scored(case, policy=ScoringPolicy.LIVE, **options):
    metrics = [FaithfulnessEvaluator(policy=policy)]
    return evaluate([case], judge="local", metrics=metrics, **options)[0]


def rests_on(evaluation):
    return [claim.support_source for claim in evaluation.results["faithfulness"].claims]


def test_a_claim_rests_on_a_chunk_else_on_the_rest_of_the_prompt():
    evaluation = scored(case())
    assert rests_on(evaluation) == ["turn", "prompt", None]
    second = evaluation.results["faithfulness"].claims[1]
    assert second.supporting_chunk_ids == ("prompt",)
    (span,) = second.evidence_spans
    assert PROMPT[span.start : span.end] in PROMPT
    assert span.chunk_id == "prompt"


def test_an_answer_without_chunks_is_checked_against_its_prompt():
    assert rests_on(scored(case(context=[]))) == ["prompt", "prompt", None]


@pytest.mark.parametrize("policy", [ScoringPolicy.RAGAS, ScoringPolicy.PROMPTFOO])
def test_reference_policies_look_at_the_chunks_alone(policy):
    assert rests_on(scored(case(), policy)) == ["turn", None, None]


def test_a_setting_leaves_the_prompt_out():
    policy = ScoringPolicy.LIVE.model_copy(update={"uses_prompt": False})
    assert rests_on(scored(case(), policy)) == ["turn", None, None]


def test_the_prompt_is_no_chunk_for_metrics_of_the_context():
    run = evaluate([case()], judge="local", metrics=["chunk_utility"])
    assert run[0].results["chunk_utility"].raw_response["total_chunks"] == 1


def test_redaction_reaches_the_prompt_before_the_judge():
    evaluation = scored(case(), redact_for_judge=lambda text, kind: text.replace("Bergen", "*"))
    assert "Bergen" not in evaluation.case.prompt_context


@pytest.mark.parametrize("is_captured", [False, True])
def test_a_record_holds_the_prompt_only_where_texts_may_be_kept(is_captured, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGALIQ_CAPTURE_CONTENT", str(is_captured).lower())
    store = f"sqlite:///{tmp_path / 'results.db'}"
    scored(case(), sinks=[store])
    [record] = read_records(store)
    assert ("Bergen" in record.model_dump_json()) is is_captured


def test_a_file_of_cases_may_hold_the_prompt(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text(case().model_dump_json())
    (read,) = read_cases(path)
    assert read.prompt_context == PROMPT

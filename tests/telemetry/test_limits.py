"""However long the names, ids and texts and however many the claims, a span stays small."""

import pytest

from ragaliq import ClaimDetail, EvaluationResult, RunInfo, SpanTarget
from ragaliq.telemetry import ContentPolicy, names

LONG = "x" * 10_000
LONGEST = max(
    names.MAX_NAME_LENGTH,
    names.MAX_EXPLANATION_LENGTH,
    names.MAX_CLAIM_TEXT_LENGTH,
    names.MAX_DOCUMENT_ID_LENGTH,
)


@pytest.fixture
def worst_run():
    return RunInfo(
        run_id=LONG,
        pipeline=LONG,
        framework="langchain",
        target=SpanTarget(trace_id="a" * 32, span_id="b" * 16, source=LONG),
        sampling_reason=LONG,
        sampling_rules=(LONG,) * 100,
        session_id=LONG,
        response_id=LONG,
    )


def worst_results(number):
    claims = tuple(
        ClaimDetail(
            claim=LONG,
            verdict="SUPPORTED",
            evidence=LONG,
            reason=LONG,
            supporting_chunk_ids=(LONG,) * 50,
            answer_span=(0, 9),
            evidence_verified=True,
            decided_by=LONG,
        )
        for _ in range(200)
    )
    return {
        f"{place}": EvaluationResult(
            evaluator_name=f"{place}{LONG}",
            score=1.0,
            passed=True,
            reasoning=LONG,
            claims=claims,
            judge=LONG,
            model=LONG,
            duration=1.0,
        )
        for place in range(number)
    }


@pytest.fixture(params=["spans", "arrays"])
def worst(request, emit, worst_run):
    """Everything on, ten metrics and more, everything long."""
    content = ContentPolicy(on_spans=True, on_events=True)
    return emit(content, worst_run, worst_results(12), claim_detail=request.param)


def strings(value):
    return [value] if isinstance(value, str) else [v for v in value if isinstance(v, str)]


def test_no_span_or_event_has_more_than_96_attributes(worst):
    counts = [len(each.attributes) for each in (*worst.spans(), *worst.events())]
    assert 60 < max(counts) <= 96
    assert not any(span.dropped_attributes for span in worst.spans())
    (root,) = [span for span in worst.spans() if "ragaliq.framework" in span.attributes]
    assert "evaluations.9.evaluation.name" in root.attributes
    assert "evaluations.10.evaluation.name" not in root.attributes


def test_no_string_is_longer_than_its_limit(worst):
    for each in (*worst.spans(), *worst.events()):
        for value in each.attributes.values():
            if isinstance(value, str | tuple):
                assert all(len(text) <= LONGEST for text in strings(value))
    assert max(len(span.name) for span in worst.spans()) <= names.MAX_NAME_LENGTH + 20


def test_lists_and_children_are_bounded_and_what_is_left_out_is_counted(worst):
    spans = worst.spans()
    claims = [span for span in spans if span.name.startswith("claim ")]
    assert len(claims) in (0, names.MAX_CLAIM_SPANS)
    for claim in claims:
        assert len(claim.attributes["ragaliq.claim.document.ids"]) == names.MAX_DOCUMENT_IDS
    (metric, *_) = [span for span in spans if "gen_ai.evaluation.name" in span.attributes]
    assert len(metric.attributes["ragaliq.claim.verdicts"]) == names.MAX_VERDICTS
    listed = names.MAX_CLAIM_SPANS if claims else names.MAX_VERDICTS
    assert metric.attributes["ragaliq.claims.truncated"] == 200 - listed


def test_metrics_have_short_attributes_too(worst):
    for metric in worst.metrics().values():
        for point in metric.data.data_points:
            for value in point.attributes.values():
                assert len(value) <= names.MAX_NAME_LENGTH

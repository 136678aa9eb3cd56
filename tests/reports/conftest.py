"""Results of an application that answers visitors of a museum, as many as asked for."""

import json
import random
from pathlib import Path

import pytest

from ragaliq import RunInfo
from ragaliq.core.results import ClaimDetail, EvaluationResult, EvidenceSpan, JudgeUsage, Status
from ragaliq.core.test_case import ContextChunk, RAGTestCase
from ragaliq.records import EvaluationRecord

START = 1_790_000_000.0
MUSEUM = json.loads(Path(__file__).with_name("museum.json").read_text(encoding="utf-8"))
CHUNKS = MUSEUM["chunks"]


def claims_of(sentences):
    claims, answer = [], ""
    for sentence in sentences:
        text, chunk, evidence = sentence["text"], sentence["chunk"], sentence["evidence"]
        answer += " " if answer else ""
        start = 0 if chunk is None else CHUNKS[chunk].index(evidence)
        claims.append(
            ClaimDetail(
                verdict=sentence["verdict"],
                confidence=0.91,
                decided_by="local" if sentence["verdict"] == "SUPPORTED" else "claude",
                evidence_verified=bool(evidence),
                supporting_chunk_ids=() if chunk is None else (f"guide-{chunk + 1}",),
                answer_span=(len(answer), len(answer) + len(text)),
                evidence_spans=()
                if chunk is None
                else (EvidenceSpan(f"guide-{chunk + 1}", start, start + len(evidence)),),
                claim=text,
                evidence=evidence,
                reason=sentence["reason"],
            )
        )
        answer += text
    return answer, tuple(claims)


def metric_of(name, score, **fields):
    return EvaluationResult(
        evaluator_name=name,
        status=Status.SCORED if score is not None else Status.JUDGE_TIMEOUT,
        score=score,
        passed=None if score is None else score >= 0.7,
        threshold=0.7,
        judge="cascade",
        model="claude-sonnet-5-5",
        usage=JudgeUsage(input_tokens=900, output_tokens=120, requests=1, cost_usd=0.0041),
        **fields,
    )


def by_name(*results):
    return {result.evaluator_name: result for result in results}


def record_of(number, *, rng=None, text=True, **fields):
    """A record of the museum; how good it is depends on `rng`, its time on `number`."""
    rng = rng or random.Random(number)
    topic = MUSEUM["topics"][rng.randrange(len(MUSEUM["topics"]))]
    kept = [
        sentence
        for sentence in topic["sentences"]
        if sentence["verdict"] == "SUPPORTED" or rng.random() < 0.45
    ]
    answer, claims = claims_of(kept)
    supported = sum(claim.verdict == "SUPPORTED" for claim in claims) / len(claims)
    failed = rng.random() < 0.02
    shared = {} if failed else {"claims": claims, "reasoning": "Judged claim by claim."}
    results = (
        metric_of("faithfulness", None if failed else supported, **shared),
        metric_of("hallucination", None if failed else supported, **shared),
        metric_of(
            "relevance", round(rng.betavariate(9, 1.6), 3), reasoning="It fits the question."
        ),
    )
    case = RAGTestCase(
        id=f"case-{number}",
        query=topic["question"],
        response=answer,
        context=[
            ContextChunk(id=f"guide-{i + 1}", text=chunk, score=round(0.9 - 0.1 * i, 2))
            for i, chunk in enumerate(CHUNKS)
        ],
        tags=["web"],
    )
    record = EvaluationRecord(
        evaluation_id=f"{number:032x}",
        run=RunInfo(
            run_id=f"run-{number:05}", pipeline=("visitors", "school groups")[number % 3 == 0]
        ),
        case_id=f"case-{number}",
        created_at=START + number * 130.0,
        results=by_name(*results),
        case=case if text else None,
    ).model_copy(update=fields)
    return record if text else without_text(record)


def without_text(record):
    bare = {"claim": "", "evidence": "", "reason": ""}
    results = {
        name: result.model_copy(
            update={
                "reasoning": "",
                "claims": tuple(claim.model_copy(update=bare) for claim in result.claims),
            }
        )
        for name, result in record.results.items()
    }
    return record.model_copy(update={"case": None, "results": results})


@pytest.fixture(scope="session")
def museum():
    """`museum(count)` gives that many records; the same ones every time."""

    def make(count, *, text=True):
        return (record_of(number, text=text) for number in range(count))

    return make


@pytest.fixture(scope="session", name="record_of")
def record_of_fixture():
    return record_of


@pytest.fixture(scope="session", name="by_name")
def by_name_fixture():
    return by_name


@pytest.fixture(scope="session", name="metric_of")
def metric_of_fixture():
    return metric_of


@pytest.fixture(scope="session")
def results_file(tmp_path_factory):
    """Writes records as `ragaliq evaluate` does; returns the path."""

    def write(records, name="museum.jsonl"):
        path = tmp_path_factory.mktemp("results") / name
        with path.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"ragaliq_results": 1, "settings": {}}) + "\n")
            file.writelines(record.model_dump_json() + "\n" for record in records)
        return path

    return write


PAYLOADS = (
    "<script>window.hit = 1</script>",
    "</script><script>window.hit = 1</script>",
    "<!--<script>",
    "<img src=x onerror='window.hit = 1'>",
    "<svg onload=window.hit=1><animate onbegin=window.hit=1>",
    "\"><a href='javascript:window.hit=1'>go</a>",
    "' onfocus='window.hit=1' autofocus='",
    "</style><style>@import url(http://127.0.0.1:9/x.css);</style>",
    "</title></textarea></noscript><iframe srcdoc='<script>parent.hit=1</script>'>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<base href='http://127.0.0.1:9/'><link rel=stylesheet href=x.css>",
    "{{ 7 * 7 }}{% raw %}${window.hit = 1}`",
    "\\u003cscript\\u003ewindow.hit=1\\u003c/script\\u003e",
    "__proto__",
    "constructor",
    "a\u2028b\u2029c\u0000d\u202egnp.exe\u2066",
    "&lt;script&gt;window.hit = 1&lt;/script&gt; &amp; &#60;b&#62;",
)


def hostile_record(payload, number=0):
    """A record that says the same thing in every field that holds text."""
    answer = f"{payload} and {payload}"
    claims = tuple(
        ClaimDetail(
            verdict=verdict,
            confidence=0.5,
            decided_by=payload,
            supporting_chunk_ids=(payload,),
            answer_span=(0, len(payload) + 2 * index),
            evidence_spans=(EvidenceSpan(payload, 1, len(payload)),),
            claim=payload,
            evidence=payload,
            reason=payload,
        )
        for index, verdict in enumerate(["CONTRADICTED", "NOT_ENOUGH_INFO", None])
    )
    metrics = [
        metric_of(payload, 0.5, claims=claims, reasoning=payload),
        metric_of(f"{payload}2", None, error_type=payload),
    ]
    return EvaluationRecord(
        evaluation_id=payload,
        run=RunInfo(
            run_id=payload,
            pipeline=payload,
            session_id=payload,
            sampling_reason=payload,
            sampling_probability=0.5,
        ),
        case_id=payload,
        created_at=START + number,
        results=by_name(
            *(m.model_copy(update={"judge": payload, "model": payload}) for m in metrics)
        ),
        case=RAGTestCase(
            name=payload,
            query=payload,
            response=answer,
            context=[ContextChunk(id=payload, text=payload, score=0.5)],
            tags=[payload],
        ),
    )


@pytest.fixture(params=PAYLOADS)
def payload(request):
    return request.param


@pytest.fixture(scope="session", name="hostile_record")
def hostile_record_fixture():
    return hostile_record

"""Results of an application that answers visitors of a museum, as many as asked for."""

import json
import random

import pytest

from ragaliq import EvaluatedRun
from ragaliq.core.results import EvidenceSpan, JudgeUsage, Status
from ragaliq.sinks import EvaluationRecord, MetricRecord
from ragaliq.sinks.record import CaseRecord, ChunkRecord, ClaimRecord

START = 1_790_000_000.0
CHUNKS = (
    "Opening hours. The museum is open from Tuesday to Sunday, 10:00 to 18:00. On Thursdays the "
    "galleries on the ground floor stay open until 21:00. The museum is closed on Mondays, on 24 "
    "and 25 December and on 1 January. Last admission is 45 minutes before closing time.",
    "Tickets. A day ticket costs 14 euros, reduced 7 euros for students, apprentices and people "
    "over 65. Children under 12 enter free of charge. Groups of ten or more pay 11 euros each if "
    "they book at least three days ahead. Tickets can be returned until the evening before.",
    "Getting here. Tram lines 2 and 9 stop at Harbour Bridge, four minutes on foot from the "
    "entrance. There is no car park at the museum; the nearest one is under the market hall. "
    "Bicycles can be locked in the courtyard. All floors can be reached by lift.",
    "The tide clock was built by Ida Maren in 1871 and shows the height of the tide at twelve "
    "ports. It was restored in 2016 and runs again since; its 148 wheels are made of brass. "
    "Visitors may not touch it, but a model beside it can be turned by hand.",
)
S, C, N = "SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"
# Question, then sentences: text, verdict, chunk, evidence, the judge's reason.
TOPICS = (
    ("Until when is the museum open on Thursdays?", [
        ("On Thursdays the ground floor galleries stay open until 21:00.", S, 0,
         "On Thursdays the galleries on the ground floor stay open until 21:00", "Said in these words."),
        ("On other days the museum closes at 17:00.", C, 0, "10:00 to 18:00",
         "The context gives 18:00 as closing time."),
        ("The café serves until half an hour before that.", N, None, "", "No chunk mentions a café."),
    ]),
    ("What does a ticket cost for a student, and can I return it?", [
        ("Students pay 7 euros instead of 14.", S, 1, "reduced 7 euros for students", "The price list agrees."),
        ("A ticket can be returned until the evening before.", S, 1,
         "Tickets can be returned until the evening before", "The same statement."),
        ("Refunds arrive within five working days.", N, None, "", "The context says nothing about how long it takes."),
    ]),
    ("Is there parking, and how do I get there by tram? 🚋", [
        ("The museum has its own car park behind the building.", C, 2, "There is no car park at the museum",
         "The context says the opposite."),
        ("Tram lines 2 and 9 stop at Harbour Bridge.", S, 2, "Tram lines 2 and 9 stop at Harbour Bridge",
         "Word for word."),
    ]),
    ("Who built the tide clock and does it still work?", [
        ("The tide clock was built by Ida Maren in 1871.", S, 3, "built by Ida Maren in 1871", "The same name and year."),
        ("It shows the tide at twelve ports.", S, 3, "shows the height of the tide at twelve ports", "As in the chunk."),
        ("It runs again since its restoration in 2006.", C, 3, "restored in 2016", "The year is 2016."),
        ("Visitors may turn its wheels by hand.", C, 3, "Visitors may not touch it", "Only the model may be turned."),
    ]),
    ("Can I come by wheelchair?", [
        ("Yes: all floors can be reached by lift.", S, 2, "All floors can be reached by lift", "The same statement."),
    ]),
)  # fmt: skip


def claims_of(sentences):
    claims, answer = [], ""
    for index, (text, verdict, chunk, evidence, reason) in enumerate(sentences):
        answer += " " if answer else ""
        start = 0 if chunk is None else CHUNKS[chunk].index(evidence)
        claims.append(
            ClaimRecord(
                index=index,
                verdict=verdict,
                confidence=0.91,
                decided_by="local" if verdict == S else "claude",
                evidence_verified=bool(evidence),
                supporting_chunk_ids=() if chunk is None else (f"guide-{chunk + 1}",),
                answer_span=(len(answer), len(answer) + len(text)),
                evidence_spans=()
                if chunk is None
                else (EvidenceSpan(f"guide-{chunk + 1}", start, start + len(evidence)),),
                text=text,
                evidence=evidence,
                reason=reason,
            )
        )
        answer += text
    return answer, tuple(claims)


def metric_of(name, score, **fields):
    return MetricRecord(
        metric_id=f"m-{name}",
        name=name,
        status=Status.SCORED if score is not None else Status.JUDGE_TIMEOUT,
        score=score,
        passed=None if score is None else score >= 0.7,
        threshold=0.7,
        judge="cascade",
        model="claude-sonnet-5-5",
        usage=JudgeUsage(input_tokens=900, output_tokens=120, requests=1, cost_usd=0.0041),
        **fields,
    )


def record_of(number, *, rng=None, text=True, **fields):
    """A record of the museum; how good it is depends on `rng`, its time on `number`."""
    rng = rng or random.Random(number)
    question, sentences = TOPICS[rng.randrange(len(TOPICS))]
    kept = [each for each in sentences if each[1] == S or rng.random() < 0.45] or sentences[:1]
    answer, claims = claims_of(kept)
    supported = sum(claim.verdict == S for claim in claims) / len(claims)
    failed = rng.random() < 0.02
    shared = {} if failed else {"claims": claims, "reasoning": "Judged claim by claim."}
    metrics = (
        metric_of("faithfulness", None if failed else supported, **shared),
        metric_of("hallucination", None if failed else supported, **shared),
        metric_of("relevance", round(rng.betavariate(9, 1.6), 3), reasoning="It answers what was asked."),
    )  # fmt: skip
    case = CaseRecord(
        query=question,
        response=answer,
        chunks=tuple(
            ChunkRecord(chunk_id=f"guide-{i + 1}", text=chunk, score=round(0.9 - 0.1 * i, 2))
            for i, chunk in enumerate(CHUNKS)
        ),
        tags=("web",),
    )
    record = EvaluationRecord(
        evaluation_id=f"{number:032x}",
        run=EvaluatedRun(run_id=f"run-{number:05}", pipeline=("visitors", "school groups")[number % 3 == 0]),
        case_id=f"case-{number}",
        created_at=START + number * 130.0,
        metrics=metrics,
        case=case if text else None,
    ).model_copy(update=fields)  # fmt: skip
    return record if text else without_text(record)


def without_text(record):
    bare = {"text": None, "evidence": None, "reason": None}
    metrics = tuple(
        metric.model_copy(
            update={
                "reasoning": None,
                "claims": tuple(claim.model_copy(update=bare) for claim in metric.claims),
            }
        )
        for metric in record.metrics
    )
    return record.model_copy(update={"case": None, "metrics": metrics})


@pytest.fixture(scope="session")
def museum():
    """`museum(count)` gives that many records; the same ones every time."""

    def make(count, *, text=True):
        return (record_of(number, text=text) for number in range(count))

    return make


@pytest.fixture(scope="session", name="record_of")
def record_of_fixture():
    return record_of


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

"""A conversation and its citations as an OTLP receiver sees them, attribute by attribute."""

import asyncio
import re

from wire import Sdk, listening, values

from ragaliq import (
    Citation,
    ContextChunk,
    Monitor,
    RAGTestCase,
    SpanTarget,
    Turn,
    __version__,
)
from ragaliq.core.test_case import CaseSources

TEXTS = {
    "query": "I have two dogs. And for children?",
    "now": "Children enter free of charge.",
    "earlier": "Refunds are paid within five days.",
    "said": "Say it in Zanzibar's words.",
    "source": "prices.md",
}
CASE = RAGTestCase(
    query=TEXTS["query"],
    context=[ContextChunk(text=TEXTS["now"], id="c1")],
    response=f"{TEXTS['now'][:-1]} [1]. {TEXTS['earlier']} You have two dogs.",
    history=[
        Turn(role="user", text=TEXTS["said"]),
        Turn(
            role="assistant",
            text=TEXTS["earlier"],
            context=[ContextChunk(text=TEXTS["earlier"], id="c2")],
        ),
    ],
    citations=[Citation(start=0, end=34, quote=TEXTS["now"], source=TEXTS["source"])],
)
TARGET = SpanTarget(trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331")


def score(sdk, case=CASE, **options):
    monitor = Monitor(
        judge="local",
        telemetry=sdk.options,
        metrics=["faithfulness", "citations", "contradiction_rate"],
        **options,
    )
    run = monitor.begin("run-7", pipeline="shop")
    assert run.submit(case, target=TARGET, session_id="talk-3")
    assert monitor.close(60.0)
    assert monitor.stats().outcomes == {"evaluated": 1}
    sdk.close()


async def dump(**options):
    async with listening() as (wire, received):
        await asyncio.to_thread(score, Sdk(wire.url), **options)
        await received.until("events", 3)
    return wire


SHARED = {
    "gen_ai.operation.name": "evaluation",
    "ragaliq.status": "scored",
    "ragaliq.evaluator.type": "code",
    "ragaliq.evaluator.id": "local",
    "ragaliq.evaluator.version": __version__,
    "ragaliq.judge.calibration": "uncalibrated",
    "ragaliq.sampling.probability": 1.0,
    "ragaliq.claim.total": 3,
    "ragaliq.claim.supported": 3,
    "ragaliq.claim.contradicted": 0,
    "ragaliq.claim.not_enough_info": 0,
    "ragaliq.claim.unverified": 0,
    "ragaliq.claim.verdicts": ["SUPPORTED"] * 3,
    "ragaliq.claims.truncated": 0,
}
METRICS = {
    "faithfulness": {
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.explanation": "3 of 3 claims supported",
        "ragaliq.passed": True,
        "ragaliq.threshold": 0.7,
        "ragaliq.higher_is_better": True,
    },
    # What rests on the user's words needs no citation; of the other two claims one has it.
    "citations": {
        "gen_ai.evaluation.score.value": 2 / 3,
        "gen_ai.evaluation.score.label": "fail",
        "gen_ai.evaluation.explanation": "1 of 2 claims cite a chunk that supports them",
        "ragaliq.passed": False,
        "ragaliq.threshold": 0.7,
        "ragaliq.higher_is_better": True,
    },
    "contradiction_rate": {
        "gen_ai.evaluation.score.value": 0.0,
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.explanation": "0 of 3 claims contradicted",
        "ragaliq.passed": True,
        "ragaliq.threshold": 0.0,
        "ragaliq.higher_is_better": False,
    },
}
CLAIMS = [
    {"ragaliq.claim.support_source": source, "ragaliq.claim.document.ids": [chunk]}
    for source, chunk in (("turn", "c1"), ("earlier_turn", "history.1/c2"), ("user", "query"))
]
# Other on each machine or in each run.
VARIES = {
    "ragaliq.evaluator.fingerprint",
    "ragaliq.evaluation.trace_id",
    "ragaliq.evaluation.span_id",
    "ragaliq.claim.confidence",
    "ragaliq.claim.is_unsure",
}


def fixed(carrier):
    return {k: v for k, v in values(carrier.attributes).items() if k not in VARIES}


def sent_texts(wire):
    return {name for name, text in TEXTS.items() if text[:-1].encode() in wire.own_bytes()}


async def test_each_attribute_of_a_conversation_and_its_citations_is_as_described():
    wire = await dump()
    assert sent_texts(wire) == set()
    spans = {span.name: span for span in wire.spans("ragaliq") if span.name != "claim supported"}
    events = {fixed(event)["gen_ai.evaluation.name"]: event for event in wire.events()}
    for metric, own in METRICS.items():
        expected = SHARED | own | {"gen_ai.evaluation.name": metric}
        span, event = fixed(spans[f"evaluation {metric}"]), fixed(events[metric])
        assert span == expected | {"openinference.span.kind": "EVALUATOR"}
        # An event stands alone.
        assert event == expected | {
            "ragaliq.pipeline.name": "shop",
            "gen_ai.evaluation.target": "shop",
            "gen_ai.conversation.id": "talk-3",
        }
    claims = [fixed(span) for span in wire.spans("ragaliq") if span.name == "claim supported"]
    assert claims == [
        {
            "openinference.span.kind": "EVALUATOR",
            "ragaliq.claim.index": index,
            "ragaliq.claim.verdict": "SUPPORTED",
            "ragaliq.claim.evidence_verified": True,
            "ragaliq.claim.decided_by": "local",
            **own,
        }
        for index, own in enumerate(CLAIMS)
    ]


async def test_no_text_of_it_leaves_but_what_was_asked_for():
    wire = await dump(capture_content=True)
    # Claims and their evidence; of what was said before, nothing that no claim rests on.
    assert sent_texts(wire) == {"now", "earlier"}


async def test_of_fetched_texts_and_redacted_ones_nothing_leaves():
    fetched = CASE.model_copy(update={"sources": CaseSources(has_fetched_texts=True)})
    fetched = fetched.model_copy(update={"response": "Children enter free [1]."})
    wire = await dump(case=fetched, capture_content=True)
    assert sent_texts(wire) == set()

    def redact(text, kind):
        return re.sub("[a-z]+ree|dogs", "X", text.replace("Refunds", "R"))

    wire = await dump(redact_for_judge=redact, capture_content=True)
    assert sent_texts(wire) == set()
    assert b"Children enter X of charge" in wire.own_bytes()

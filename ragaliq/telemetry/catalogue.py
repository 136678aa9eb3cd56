"""What is emitted, described once: instruments are made from it, and the documentation's tables.

`python docs/telemetry_tables.py` writes the tables.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ragaliq.telemetry import names

AttributeType = Literal["string", "double", "int", "boolean", "string[]", "double[]"]
Instrument = Literal[
    "histogram", "counter", "gauge", "observable counter", "observable up-down counter"
]


class Attribute(NamedTuple):
    """An attribute of a span or event; `<i>` in its name stands for a number."""

    name: str
    type: AttributeType
    meaning: str
    content: bool = False  # whether it is emitted only with content capture


class Metric(NamedTuple):
    """A metric; its unit is in UCUM, a histogram's boundaries are advised."""

    name: str
    instrument: Instrument
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()


_ITEM = f"{names.EVALUATIONS}.<i>.evaluation"
_KIND = Attribute(names.SPAN_KIND, "string", "`EVALUATOR`")
_OPERATION = Attribute(names.OPERATION_NAME, "string", "`evaluation`")
_CALIBRATION = Attribute(
    names.JUDGE_CALIBRATION,
    "string",
    "the [calibration](calibration.md) of the judge's confidence, or `uncalibrated`",
)
_PIPELINE = Attribute(
    names.PIPELINE_NAME, "string", "the application's name for the chain, when given"
)
_RESPONSE_ID = Attribute(names.RESPONSE_ID, "string", "the evaluated answer's id, when known")

ROOT_SPAN = (
    _KIND,
    _OPERATION,
    Attribute(f"{_ITEM}.name", "string", "the metric; of the first 10"),
    Attribute(f"{_ITEM}.score", "double", "0 to 1; absent without a score"),
    Attribute(f"{_ITEM}.label", "string", "`pass`, `fail`, or the status without a score"),
    Attribute(f"{_ITEM}.explanation", "string", "as on the metric's span"),
    Attribute(f"{_ITEM}.annotator_kind", "string", "`LLM`, or `CODE` for a judge without a model"),
    Attribute(f"{_ITEM}.identifier", "string", "the judge"),
    Attribute(names.TARGET_TRACE_ID, "string", "trace of the evaluated span, when one was found"),
    Attribute(names.TARGET_SPAN_ID, "string", "the evaluated span, when one was found"),
    Attribute(names.TARGET_RUN_ID, "string", "the framework's id of the run"),
    Attribute(names.TARGET_SOURCE, "string", "how the span was found, else `none`"),
    _PIPELINE,
    Attribute(names.FRAMEWORK, "string", "`langchain` or `llama_index`, when known"),
    Attribute(
        names.SAMPLING_PROBABILITY, "double", "the run's [sampling probability](sampling.md)"
    ),
    Attribute(names.SAMPLING_REASON, "string", "why it was chosen"),
    Attribute(names.SAMPLING_RULES, "string[]", "all rules it matched, at most 16"),
    Attribute(names.EVALUATION_LAG, "double", "seconds from the run's end to its evaluation"),
    Attribute(names.SCHEMA, "string", f"`{names.SCHEMA_VERSION}`"),
    Attribute(names.SESSION_ID, "string", "the conversation, when known"),
    Attribute(names.METADATA, "string", "the run's metadata (tenant, user), as JSON", content=True),
    _RESPONSE_ID,
)

_FINGERPRINT = Attribute(
    names.EVALUATOR_FINGERPRINT,
    "string",
    "the [judge epoch](concepts.md#judge-epochs): never average scores of two",
)

_RESULT = (
    _OPERATION,
    Attribute(names.EVALUATION_NAME, "string", "the metric"),
    Attribute(names.EVALUATION_SCORE, "double", "0 to 1; absent without a score"),
    Attribute(names.EVALUATION_LABEL, "string", "`pass` or `fail`; absent without a score"),
    Attribute(
        names.EVALUATION_EXPLANATION,
        "string",
        "such as `3 of 5 claims supported`; the judge's words only with content",
    ),
    Attribute(names.JUDGE_MODEL, "string", "the judge's model, when it has one"),
    Attribute(names.STATUS, "string", "the [status](concepts.md#statuses)"),
    Attribute(names.EVALUATOR_TYPE, "string", "what the judge is: `llm`, `nli` or `code`"),
    Attribute(names.EVALUATOR_ID, "string", "the judge"),
    Attribute(names.EVALUATOR_VERSION, "string", "ragaliq's version"),
    _FINGERPRINT,
    _CALIBRATION,
    Attribute(names.THRESHOLD, "double", "the score from which the answer passes"),
    Attribute(names.PASSED, "boolean", "whether it does; absent without a score"),
    Attribute(names.HIGHER_IS_BETTER, "boolean", "whether a high score is good"),
    Attribute(names.CLAIM_TOTAL, "int", "claims in the answer"),
    Attribute(names.CLAIM_SUPPORTED, "int", "of them supported"),
    Attribute(names.CLAIM_CONTRADICTED, "int", "of them contradicted"),
    Attribute(names.CLAIM_NOT_ENOUGH_INFO, "int", "of them not covered by the context"),
    Attribute(names.CLAIM_UNVERIFIED, "int", "of them without a verdict"),
    Attribute(
        names.CLAIM_VERDICTS,
        "string[]",
        f"verdicts in the answer's order, at most {names.MAX_VERDICTS}; not with "
        '`claim_detail="none"`',
    ),
    Attribute(
        names.CLAIMS_TRUNCATED, "int", 'claims beyond the limits; not with `claim_detail="none"`'
    ),
    Attribute(names.ERROR_TYPE, "string", "the error's class, on failures"),
    Attribute(
        names.SAMPLING_PROBABILITY,
        "double",
        "the metric's sampling probability; on its span where it differs from the run's",
    ),
)

METRIC_SPAN = (
    _KIND,
    *_RESULT,
    Attribute(names.CLAIM_CONFIDENCES, "double[]", 'one a claim, with `claim_detail="arrays"`'),
    Attribute(names.CLAIM_DECIDERS, "string[]", 'one a claim, with `claim_detail="arrays"`'),
    Attribute(
        names.CLAIM_TEXTS, "string[]", 'one a claim, with `claim_detail="arrays"`', content=True
    ),
)

EVENT = (
    *_RESULT,
    _PIPELINE,
    Attribute(names.EVALUATION_TARGET, "string", "the same, for backends that group by it"),
    Attribute(names.CONVERSATION_ID, "string", "the conversation, when known"),
    Attribute(names.EVALUATION_TRACE_ID, "string", "the evaluation's own trace, if recorded"),
    Attribute(names.EVALUATION_SPAN_ID, "string", "the metric's span, if recorded"),
    _RESPONSE_ID,
)

QUALITY_EVENT = (
    _PIPELINE,
    Attribute(names.EVALUATION_NAME, "string", "the metric"),
    _FINGERPRINT,
    Attribute(names.HIGHER_IS_BETTER, "boolean", "whether a high score is good"),
    Attribute(names.QUALITY_DIRECTION, "string", "`fell` or `rose`"),
    Attribute(names.QUALITY_DIFFERENCE, "double", "the mean now less that of the reference"),
    Attribute(names.QUALITY_DIFFERENCE_LOW, "double", "lower end of its 95 % interval"),
    Attribute(names.QUALITY_DIFFERENCE_HIGH, "double", "upper end of it"),
    Attribute(names.QUALITY_NOW, "double", "the mean now"),
    Attribute(names.QUALITY_SCORES, "int", "scores behind it"),
    Attribute(names.QUALITY_REFERENCE, "string", "such as `release 2.0`"),
    Attribute(names.SERVICE_VERSION, "string", "the release it was seen in, when known"),
)

CLAIM_SPAN = (
    _KIND,
    Attribute(names.CLAIM_INDEX, "int", "place in the answer, from 0"),
    Attribute(
        names.CLAIM_VERDICT,
        "string",
        "`SUPPORTED`, `CONTRADICTED`, `NOT_ENOUGH_INFO` or `UNVERIFIED`",
    ),
    Attribute(names.CLAIM_CONFIDENCE, "double", "the judge's own certainty, 0 to 1"),
    Attribute(names.CLAIM_IS_UNSURE, "boolean", "whether the claim is worth a second look"),
    Attribute(
        names.CLAIM_SUPPORT_SOURCE,
        "string",
        "what the verdict rests on: `turn`, `earlier_turn` or `user`",
    ),
    Attribute(
        names.CLAIM_DOCUMENT_IDS,
        "string[]",
        f"chunks the verdict rests on, at most {names.MAX_DOCUMENT_IDS} of "
        f"{names.MAX_DOCUMENT_ID_LENGTH} characters",
    ),
    Attribute(
        names.CLAIM_DOCUMENT_SOURCES,
        "string[]",
        "the files or addresses that their metadata names",
        content=True,
    ),
    Attribute(
        names.CLAIM_EVIDENCE_VERIFIED, "boolean", "whether the quoted evidence is in the context"
    ),
    Attribute(names.CLAIM_DECIDED_BY, "string", "the judge that gave the verdict"),
    _CALIBRATION,
    Attribute(names.CLAIM_TEXT, "string", "the claim", content=True),
    Attribute(names.CLAIM_EVIDENCE, "string", "the judge's quote", content=True),
    Attribute(names.CLAIM_EXPLANATION, "string", "the judge's reason", content=True),
    Attribute(names.CLAIM_ANSWER_START, "int", "first character in the answer", content=True),
    Attribute(names.CLAIM_ANSWER_END, "int", "end in the answer", content=True),
)

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_LONG = (*_SECONDS, 300.0, 900.0, 3600.0)
_WHAT = (names.EVALUATION_NAME, names.EVALUATOR_ID, names.PIPELINE_NAME)
_QUALITY = (names.EVALUATION_NAME, names.PIPELINE_NAME)
_JUDGE = (names.EVALUATOR_ID, names.JUDGE_MODEL, names.PIPELINE_NAME)

METRICS = (
    Metric(
        names.METRIC_SCORE,
        "histogram",
        "1",
        "Scores of evaluations that were measured.",
        (*_WHAT, names.EVALUATOR_FINGERPRINT),
        tuple(step / 20 for step in range(21)),
    ),
    Metric(
        names.METRIC_EVALUATIONS,
        "counter",
        "{evaluation}",
        "Evaluations by status and label.",
        (*_WHAT, names.EVALUATOR_FINGERPRINT, names.STATUS, names.EVALUATION_LABEL),
    ),
    Metric(names.METRIC_DURATION, "histogram", "s", "Time an evaluation took.", _WHAT, _SECONDS),
    Metric(
        names.METRIC_LAG,
        "histogram",
        "s",
        "Time from the end of a run to the start of its evaluation.",
        (names.PIPELINE_NAME,),
        _LONG,
    ),
    Metric(
        names.METRIC_CLAIMS,
        "counter",
        "{claim}",
        "Claims by verdict; claims that metrics share count once.",
        (names.CLAIM_VERDICT, names.CLAIM_DECIDED_BY, names.PIPELINE_NAME),
    ),
    Metric(
        names.METRIC_RUNS,
        "observable counter",
        "{run}",
        "Runs by how they ended, as in `Monitor.stats()`.",
        (names.RUN_OUTCOME,),
    ),
    Metric(
        names.METRIC_SKIPPED_RUNS,
        "observable counter",
        "{run}",
        "Of these the ones that gave no case, `incomplete_run` and `not_rag`, by reason.",
        (names.RUN_OUTCOME, names.RUN_REASON, names.PIPELINE_NAME),
    ),
    Metric(
        names.METRIC_QUEUE_SIZE,
        "observable up-down counter",
        "{run}",
        "Runs waiting to be evaluated.",
    ),
    Metric(
        names.METRIC_TOKENS,
        "counter",
        "{token}",
        "Tokens the judge used.",
        (names.TOKEN_TYPE, *_JUDGE),
    ),
    Metric(
        names.METRIC_COST,
        "counter",
        "{USD}",
        "What the judge cost at list price, where known.",
        _JUDGE,
    ),
    Metric(
        names.METRIC_LIMITS_ERRORS,
        "counter",
        "{error}",
        "Failed attempts to reach the storage of limits that processes share.",
        (names.ERROR_TYPE,),
    ),
    Metric(
        names.METRIC_BUDGET_LEFT,
        "gauge",
        "{share}",
        "Share of each limit of the budget that may still be spent, as of the last run.",
        (names.BUDGET_LIMIT,),
    ),
    Metric(
        names.METRIC_AGREEMENT,
        "gauge",
        # Not "1": on its way to Prometheus a collector would make `_ratio` of it, an exporter not.
        "{share}",
        "Share of a cascade's last claims on which two judges agree: of `accepted` ones that were "
        "audited, or of `escalated` ones.",
        (names.JUDGE_FIRST, names.JUDGE_SECOND, names.CLAIM_ROUTE),
    ),
    Metric(
        names.METRIC_SINK_ERRORS,
        "counter",
        "{error}",
        "Failed attempts of sinks to store results.",
        (names.SINK_NAME, names.ERROR_TYPE),
    ),
    Metric(
        names.METRIC_PUBLISH_ERRORS,
        "counter",
        "{error}",
        "Failed attempts to enqueue runs for [workers](worker-tier.md).",
        (names.ERROR_TYPE,),
    ),
    Metric(
        names.METRIC_JOBS,
        "counter",
        "{job}",
        "What [workers](worker-tier.md) did with jobs; `retried` besides the final outcome.",
        (names.JOB_OUTCOME, names.JOB_REASON),
    ),
    Metric(
        names.METRIC_JOB_WAIT,
        "histogram",
        "s",
        "Time jobs waited at the broker for a worker.",
        (),
        _LONG,
    ),
    Metric(
        names.METRIC_QUALITY_MEAN,
        "gauge",
        "{score}",
        "Quality of the latest week as people would judge it; see [quality](quality.md).",
        _QUALITY,
    ),
    Metric(
        names.METRIC_QUALITY_LOW, "gauge", "{score}", "Lower end of its 95 % interval.", _QUALITY
    ),
    Metric(
        names.METRIC_QUALITY_HIGH, "gauge", "{score}", "Upper end of its 95 % interval.", _QUALITY
    ),
    Metric(names.METRIC_QUALITY_LABELS, "gauge", "{label}", "Labels that it rests on.", _QUALITY),
    Metric(
        names.METRIC_QUALITY_CHANGED,
        "gauge",
        "{score}",
        "By how much scores have moved, while an [alarm](quality.md#alarms) is fresh; else 0.",
        (*_QUALITY, names.EVALUATOR_FINGERPRINT, names.HIGHER_IS_BETTER),
    ),
)

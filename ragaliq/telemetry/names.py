"""Every name in the telemetry, in one place.

The `gen_ai.*` names follow the OpenTelemetry GenAI conventions, `openinference.*` and
`evaluations.*` the OpenInference specification. They are spelled out here because the constants in
`opentelemetry.semconv` are all marked deprecated.
"""

from __future__ import annotations

from typing import Literal, get_args

SCOPE = "ragaliq"
SCHEMA_VERSION = "1"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.38.0"
"""The version of the conventions that the `gen_ai.*` names are those of."""

# --- Span names -----------------------------------------------------------------------------
SPAN_EVALUATION = "evaluation"
SPAN_CLAIM = "claim"

# --- Event names ----------------------------------------------------------------------------
EVENT_RESULT = "gen_ai.evaluation.result"
EVENT_QUALITY_CHANGED = "ragaliq.quality.changed"

# --- OpenTelemetry GenAI conventions ---------------------------------------------------------
OPERATION_NAME = "gen_ai.operation.name"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"
RESPONSE_ID = "gen_ai.response.id"
ERROR_TYPE = "error.type"
SESSION_ID = "session.id"
METADATA = "metadata"
EVALUATION_TARGET = "gen_ai.evaluation.target"
CONVERSATION_ID = "gen_ai.conversation.id"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - a name

# --- OpenInference --------------------------------------------------------------------------
SPAN_KIND = "openinference.span.kind"
SPAN_KIND_EVALUATOR = "EVALUATOR"
EVALUATIONS = "evaluations"  # a list, flattened: `evaluations.0.evaluation.score`

# --- ragaliq ---------------------------------------------------------------------------------
TARGET_TRACE_ID = "ragaliq.target.trace_id"
TARGET_SPAN_ID = "ragaliq.target.span_id"
TARGET_RUN_ID = "ragaliq.target.run_id"
TARGET_SOURCE = "ragaliq.target.source"
TARGET_MODEL = "ragaliq.target.model"
PIPELINE_NAME = "ragaliq.pipeline.name"
FRAMEWORK = "ragaliq.framework"
SCHEMA = "ragaliq.schema.version"
SAMPLING_PROBABILITY = "ragaliq.sampling.probability"
SAMPLING_REASON = "ragaliq.sampling.reason"
SAMPLING_RULES = "ragaliq.sampling.rules"
EVALUATION_LAG = "ragaliq.evaluation.lag"
EVALUATION_TRACE_ID = "ragaliq.evaluation.trace_id"
EVALUATION_SPAN_ID = "ragaliq.evaluation.span_id"

STATUS = "ragaliq.status"
EVALUATOR_TYPE = "ragaliq.evaluator.type"
EVALUATOR_ID = "ragaliq.evaluator.id"
EVALUATOR_VERSION = "ragaliq.evaluator.version"
EVALUATOR_FINGERPRINT = "ragaliq.evaluator.fingerprint"
JUDGE_MODEL = "ragaliq.judge.model"
JUDGE_CALIBRATION = "ragaliq.judge.calibration"
BUDGET_LIMIT = "ragaliq.budget.limit"
JUDGE_FIRST = "ragaliq.judge.first"
JUDGE_SECOND = "ragaliq.judge.second"
THRESHOLD = "ragaliq.threshold"
PASSED = "ragaliq.passed"
HIGHER_IS_BETTER = "ragaliq.higher_is_better"

CLAIM_TOTAL = "ragaliq.claim.total"
CLAIM_SUPPORTED = "ragaliq.claim.supported"
CLAIM_CONTRADICTED = "ragaliq.claim.contradicted"
CLAIM_NOT_ENOUGH_INFO = "ragaliq.claim.not_enough_info"
CLAIM_UNVERIFIED = "ragaliq.claim.unverified"
CLAIM_VERDICTS = "ragaliq.claim.verdicts"
CLAIM_CONFIDENCES = "ragaliq.claim.confidences"
CLAIM_DECIDERS = "ragaliq.claim.deciders"
CLAIM_TEXTS = "ragaliq.claim.texts"
CLAIMS_TRUNCATED = "ragaliq.claims.truncated"

CLAIM_INDEX = "ragaliq.claim.index"
CLAIM_VERDICT = "ragaliq.claim.verdict"
CLAIM_CONFIDENCE = "ragaliq.claim.confidence"
CLAIM_IS_UNSURE = "ragaliq.claim.is_unsure"
CLAIM_DOCUMENT_IDS = "ragaliq.claim.document.ids"
CLAIM_DOCUMENT_SOURCES = "ragaliq.claim.document.sources"
CLAIM_EVIDENCE_VERIFIED = "ragaliq.claim.evidence_verified"
CLAIM_SUPPORT_SOURCE = "ragaliq.claim.support_source"
CLAIM_DECIDED_BY = "ragaliq.claim.decided_by"
CLAIM_ROUTE = "ragaliq.claim.route"
CLAIM_TEXT = "ragaliq.claim.text"
CLAIM_EVIDENCE = "ragaliq.claim.evidence"
CLAIM_EXPLANATION = "ragaliq.claim.explanation"
CLAIM_ANSWER_START = "ragaliq.claim.answer.start"
CLAIM_ANSWER_END = "ragaliq.claim.answer.end"

RUN_OUTCOME = "ragaliq.run.outcome"
RUN_REASON = "ragaliq.run.reason"
JOB_OUTCOME = "ragaliq.job.outcome"
JOB_REASON = "ragaliq.job.reason"
SINK_NAME = "ragaliq.sink.name"

QUALITY_DIRECTION = "ragaliq.quality.direction"
QUALITY_DIFFERENCE = "ragaliq.quality.difference"
QUALITY_DIFFERENCE_LOW = "ragaliq.quality.difference.low"
QUALITY_DIFFERENCE_HIGH = "ragaliq.quality.difference.high"
QUALITY_NOW = "ragaliq.quality.now"
QUALITY_SCORES = "ragaliq.quality.scores"
QUALITY_REFERENCE = "ragaliq.quality.reference"
SERVICE_VERSION = "service.version"

# --- Metrics ---------------------------------------------------------------------------------
METRIC_SCORE = "ragaliq.evaluation.score"
METRIC_EVALUATIONS = "ragaliq.evaluation.count"
METRIC_DURATION = "ragaliq.evaluation.duration"
METRIC_LAG = "ragaliq.evaluation.lag"
METRIC_CLAIMS = "ragaliq.claim.count"
METRIC_RUNS = "ragaliq.run.count"
METRIC_SKIPPED_RUNS = "ragaliq.run.skipped"
METRIC_QUEUE_SIZE = "ragaliq.queue.size"
METRIC_TOKENS = "ragaliq.judge.tokens"
METRIC_COST = "ragaliq.judge.cost"
METRIC_LIMITS_ERRORS = "ragaliq.limits.storage.errors"
METRIC_BUDGET_LEFT = "ragaliq.budget.left"
METRIC_AGREEMENT = "ragaliq.judge.agreement"
METRIC_SINK_ERRORS = "ragaliq.sink.errors"
METRIC_PUBLISH_ERRORS = "ragaliq.publish.errors"
METRIC_JOBS = "ragaliq.job.count"
METRIC_JOB_WAIT = "ragaliq.job.wait"
METRIC_QUALITY_MEAN = "ragaliq.quality.mean"
METRIC_QUALITY_LOW = "ragaliq.quality.low"
METRIC_QUALITY_HIGH = "ragaliq.quality.high"
METRIC_QUALITY_LABELS = "ragaliq.quality.labels"
METRIC_QUALITY_CHANGED = "ragaliq.quality.changed"

Outcome = Literal[
    "evaluated",
    "no_context",
    "sampled_out",
    "over_budget",
    "queue_full",
    "shutdown",
    "incomplete_run",
    "not_rag",
    "enqueued",
]
"""How a run ended. Every run that started has exactly one outcome or is still pending."""

RUN_OUTCOMES: tuple[str, ...] = get_args(Outcome)
"""Every value of `RUN_OUTCOME`."""

# Every value of `JOB_OUTCOME`.
JOB_OUTCOMES = (
    "evaluated",
    "already_recorded",
    "over_budget",
    "retried",
    "redelivered",
    "requeued",
    "dead_letter",
)

# Replaces every value beyond the first `MAX_METRIC_VALUES` of a metric attribute.
OTHER = "_OTHER"

# --- Environment variables -------------------------------------------------------------------
ENV_CAPTURE_CONTENT = "RAGALIQ_CAPTURE_CONTENT"
ENV_RELATION = "RAGALIQ_TELEMETRY_RELATION"
ENV_CLAIM_DETAIL = "RAGALIQ_TELEMETRY_CLAIM_DETAIL"
ENV_ON_UNSAMPLED = "RAGALIQ_TELEMETRY_ON_UNSAMPLED"

# --- Limits: the SDK drops the oldest attribute past 128, so stay far below -------------------
MAX_METRICS_ON_ROOT = 10
MAX_CLAIM_SPANS = 32
MAX_VERDICTS = 64
MAX_DOCUMENT_IDS = 8
MAX_DOCUMENT_ID_LENGTH = 128
MAX_CLAIM_TEXT_LENGTH = 512
MAX_METADATA_LENGTH = 1024
MAX_EXPLANATION_LENGTH = 1024
MAX_NAME_LENGTH = 256
MAX_SAMPLING_RULES = 16
MAX_METRIC_VALUES = 100

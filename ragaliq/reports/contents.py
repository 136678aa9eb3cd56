"""Content of the report: figures for its tables, data for its charts and answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ragaliq.core.results import ClaimDetail
from ragaliq.core.test_case import ChunkId, RAGTestCase
from ragaliq.records import EvaluationRecord
from ragaliq.records.summary import MetricSummary, SeriesKey
from ragaliq.reports.gathering import VERDICTS, ClaimSet, Gathering, claim_sets, finite
from ragaliq.reports.wording import METHOD_NAMES, interval_text, pass_line
from ragaliq.statistics import Estimate

# Bytes of the page for answers; with charts and the rest it stays under 15 MB for any texts.
_ROOM_FOR_ANSWERS = 7_000_000
_ROOM_FOR_ROWS = 6_000_000
# Most characters of an answer's chunks; those with evidence come first.
_MAX_CHUNK_TEXT = 60_000

_MOST_BUCKETS = 40
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_WIDTHS = (
    *(_MINUTE * n for n in (1, 5, 15)),
    *(_HOUR * n for n in (1, 3, 6, 12)),
    *(_DAY * n for n in (1, 2, 7, 14, 28, 91, 364)),
)
_LEAST_RANGE = 5 * _MINUTE

# `<` could begin `</script>` or `<!--`; the others are for XML parsers, and for engines that treat
# the two separators as line ends.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


class Contents(NamedTuple):
    """Data of a page, as JSON text safe within a script element, and figures for its tables.

    `in_full` answers are shown whole and `in_rows` are listed.
    """

    data: str
    figures: dict[str, Any]
    in_full: int
    in_rows: int


def contents_of(gathered: Gathering, *, trace_url: str | None = None) -> Contents:
    """Build the page's contents."""
    rows = list(_fitting(gathered.rows(), _ROOM_FOR_ROWS))
    places = {number: place for place, (number, _) in enumerate(rows)}
    answers = _fitting(
        (
            (places[number], _full_answer(record))
            for number, record in gathered.answers()
            if number in places
        ),
        _ROOM_FOR_ANSWERS,
    )
    full = {str(place): text for place, text in answers}
    width = bucket_width(gathered.summary.first, gathered.summary.last)
    names = [pipeline.name for pipeline in gathered.summary.pipelines]
    found = gathered.summary.series
    series = [_series(each, _decider(key, found), width, len(names)) for key, each in found.items()]
    head = {
        "pipelines": names,
        "statuses": gathered.statuses,
        "series": series,
        "width": width,
        "trace_url": trace_url,
    }
    parts = [f'"{name}":{embedded_json(value)}' for name, value in head.items()]
    parts.append(f'"rows":[{",".join(text for _, text in rows)}]')
    parts.append(f'"answers":{{{",".join(f"{json.dumps(k)}:{v}" for k, v in full.items())}}}')
    figures = _figures(gathered, series) | {"has_trend": width is not None}
    return Contents(f"{{{','.join(parts)}}}", figures, len(full), len(rows))


def _fitting(items: Iterable[tuple[int, Any]], room: int) -> Iterable[tuple[int, str]]:
    """Items as JSON; an item too large for the remaining room is skipped."""
    for key, item in items:
        text = embedded_json(item)
        size = len(text.encode("utf-8", "replace"))
        if size <= room:
            room -= size
            yield key, text


def embedded_json(value: Any) -> str:
    """Encode `value` as JSON with `<`, `>`, `&`, U+2028 and U+2029 escaped.

    So it cannot end the script element that contains it.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


# --- figures ----------------------------------------------------------------------------------


_FEWEST = 10  # answers of a stretch of time, below which its mean says nothing about a move


def bucket_width(first: float, last: float) -> float | None:
    """Seconds of a trend's buckets; None if the time is too short for a trend."""
    length = last - first
    if length < _LEAST_RANGE:
        return None
    fitting = (width for width in _WIDTHS if length / width <= _MOST_BUCKETS)
    return next(fitting, _WIDTHS[-1] * math.ceil(length / _WIDTHS[-1] / _MOST_BUCKETS))


def _series(
    series: MetricSummary, decider: str, width: float | None, pipelines: int
) -> dict[str, Any]:
    """Series as the charts need it: under `all`, and under each pipeline's number."""
    several: list[int | None] = list(range(pipelines)) if pipelines > 1 else []
    return {
        "metric": series.key.metric,
        "judge": series.key.judge,
        "model": series.key.model,
        "decider": decider,
        "threshold": series.threshold,
        "higher_is_better": series.higher_is_better,
        "charts": {
            "all" if pipeline is None else str(pipeline): {
                "mean": _mean(series.estimate(pipeline)),
                "bins": series.histogram(pipeline),
                # Start, mean, low, high and n of each bucket with scores, in the order of time.
                "points": [
                    [
                        round(start),
                        *(round(x, 4) for x in (mean.value, mean.low, mean.high)),
                        mean.n,
                    ]
                    for start, mean in (series.trend(width, pipeline) if width else [])
                ],
            }
            for pipeline in [None, *several]
        },
    }


def _decider(key: SeriesKey, keys: Iterable[SeriesKey]) -> str:
    """Shortest name that distinguishes a series of one metric: two judges may use one model."""
    rivals = [other for other in keys if (other.metric, other.model) == (key.metric, key.model)]
    name = key.model or key.judge
    if key.model is not None and len({other.judge for other in rivals}) > 1:
        name = f"{key.judge}, {key.model}"
    # The same judge with other prompts, parameters, thresholds or another policy.
    if sum(other.judge == key.judge for other in rivals) > 1:
        name = f"{name}, epoch {key.fingerprint[:6] or 'unknown'}"
    return name


def _mean(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {
        "value": round(estimate.value, 4),
        "low": round(estimate.low, 4),
        "high": round(estimate.high, 4),
        "n": estimate.n,
        "shown": interval_text(estimate),
        "method": METHOD_NAMES.get(estimate.method, estimate.method),
    }


def _figures(gathered: Gathering, charted: list[dict[str, Any]]) -> dict[str, Any]:
    claims: dict[str, dict[str | None, int]] = {}
    for (judge, verdict), count in gathered.claims.most_common(200):
        claims.setdefault(judge, dict.fromkeys(VERDICTS, 0))[verdict] = count
    pipelines = gathered.summary.pipelines
    return {
        "series": [
            {
                "metric": series.key.metric,
                "decider": chart["decider"],
                "threshold": series.threshold,
                "higher_is_better": series.higher_is_better,
                "mean": chart["charts"]["all"]["mean"],
                "spread": series.spread,
                "passed": series.passed,
                "measured": series.measured,
                "statuses": series.statuses,
                "pipelines": [
                    chart["charts"].get(str(number), chart["charts"]["all"])["mean"]
                    for number in range(len(pipelines))
                ],
            }
            for series, chart in zip(gathered.summary.series.values(), charted, strict=True)
        ],
        "epochs": _epochs(gathered.summary.series.values(), charted),
        "moves": _moves(charted),
        "claims": claims,
        "lead": pass_line(*gathered.summary.passing, gathered.summary.cases),
        "judges": list(
            dict.fromkeys(
                f"{key.judge} ({key.model})" if key.model else key.judge
                for key in gathered.summary.series
            )
        ),
        "pipelines": pipelines,
        "questions": gathered.open_questions.groups() if gathered.with_text else [],
    }


def _moves(charted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Metrics whose mean changed beyond both intervals in the last two stretches of time."""
    moves = []
    for chart in charted:
        points = [point for point in chart["charts"]["all"]["points"] if point[4] >= _FEWEST]
        for before, after in pairwise(points[-2:]):
            fell, rose = after[3] < before[2], after[2] > before[3]
            if fell or rose:
                moves.append(
                    {
                        "metric": chart["metric"],
                        "word": "better" if rose == chart["higher_is_better"] else "worse",
                        "before": before[1],
                        "after": after[1],
                        "since": after[0],
                    }
                )
    return moves


def _epochs(found: Iterable[MetricSummary], charted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Changes of what makes a metric's scores, with both names, in the order of time.

    Two judges that score concurrently are not a change.
    """
    by_metric: dict[str, list[tuple[float, float, str]]] = {}
    for series, chart in zip(found, charted, strict=True):
        if times := series.times:
            epoch = min(times), max(times), chart["decider"]
            by_metric.setdefault(series.key.metric, []).append(epoch)
    changes = [
        {"metric": metric, "time": after[0], "before": before[2], "after": after[2]}
        for metric, epochs in by_metric.items()
        for before, after in pairwise(sorted(epochs))
        if before[1] < after[0]
    ]
    return sorted(changes, key=lambda change: (change["time"], change["metric"]))


# --- one answer in full: its texts cut at its claims, and who decided what ------------------------


def _full_answer(record: EvaluationRecord) -> dict[str, Any]:
    """Complete record as JSON values."""
    run, case = record.run, record.case
    return {
        "query": case.query if case and case.query.strip() else None,
        "name": case.name if case else "",
        "tags": list(case.tags) if case else [],
        "has_text": case is not None,
        "case_id": record.case_id,
        "row": record.row,
        "input": [[name, str(value)] for name, value in case.metadata.items()] if case else [],
        "framework": run.framework,
        "session": run.session_id,
        "trace": run.target.trace_id if run.target else None,
        "span": run.target.span_id if run.target else None,
        "probability": run.sampling_probability,
        "reason": run.sampling_reason,
        "lag": finite(record.lag),
        "metrics": [
            {
                "name": name,
                "status": result.status.value,
                "score": finite(result.score),
                "passed": result.passed,
                "threshold": finite(result.threshold) or 0.0,
                "higher_is_better": result.higher_is_better,
                "judge": result.judge,
                "model": result.model,
                "error": result.error_type,
                "duration": finite(result.duration),
                "tokens": result.usage.total_tokens,
                "cost": finite(result.usage.cost_usd),
                "reasoning": result.reasoning or None,
            }
            for name, result in record.results.items()
        ],
        "sets": [
            {
                "metrics": found.metrics,
                "omitted": max((record.claims_omitted.get(m, 0) for m in found.metrics), default=0),
                "claims": [_claim(claim) for claim in found.claims],
                "answer": _cut_answer(case.response, found.claims) if case else None,
                "chunks": _chunks(record.case, found.claims),
            }
            for found in claim_sets(record) or [ClaimSet([], ())]
        ],
    }


def _claim(claim: ClaimDetail) -> dict[str, Any]:
    return {
        "verdict": claim.verdict,
        "confidence": claim.confidence,
        "calibration": claim.calibration,
        "by": claim.decided_by,
        "source": claim.support_source,
        "verified": claim.evidence_verified,
        "chunk_ids": [str(chunk_id) for chunk_id in claim.supporting_chunk_ids],
        "text": claim.claim or None,
        "evidence": claim.evidence or None,
        "reason": claim.reason or None,
    }


_WORST_FIRST = ("CONTRADICTED", "NOT_ENOUGH_INFO", "UNVERIFIED", "SUPPORTED")

Segment = tuple[str, list[int]]
"""A piece of text, and the numbers of the ranges that cover all of it."""


def _chunks(case: RAGTestCase | None, claims: Sequence[ClaimDetail]) -> list[dict[str, Any]]:
    if case is None:
        return []
    texts = dict(zip(case.chunk_ids, case.context_texts, strict=True))
    # The parts of prompt and conversation that claims rest on.
    rested_on = {chunk_id for claim in claims for chunk_id in claim.supporting_chunk_ids}
    said = case.other_texts.items()
    texts |= {chunk_id: text for chunk_id, text in said if chunk_id in rested_on}
    spans: dict[ChunkId, list[tuple[int, int, int]]] = {chunk_id: [] for chunk_id in texts}
    for number, claim in enumerate(claims):
        for span in claim.evidence_spans:
            if span.chunk_id in spans:
                spans[span.chunk_id].append((span.start, span.end, number))
    shown: set[ChunkId] = set()
    room = _MAX_CHUNK_TEXT
    for chunk_id in sorted(texts, key=lambda chunk_id: not spans[chunk_id]):
        if len(texts[chunk_id]) <= room:
            shown.add(chunk_id)
            room -= len(texts[chunk_id])
    own = [None if isinstance(chunk, str) else chunk.score for chunk in case.context]
    scores = dict(zip(case.chunk_ids, own, strict=True))
    return [
        {
            "id": str(chunk_id),
            "score": finite(scores.get(chunk_id)),
            "length": len(text) or None,
            "text": cut(text, spans[chunk_id]) if text and chunk_id in shown else None,
        }
        for chunk_id, text in texts.items()
    ]


def judged_pieces(text: str, claims: Sequence[ClaimDetail]) -> list[tuple[str, str | None]]:
    """Split an answer into pieces, each with the worst verdict of its claims, None for no claim.

    A claim without a verdict counts as `UNVERIFIED`.
    """
    pieces: list[tuple[str, str | None]] = []
    for piece, numbers in _cut_answer(text, claims) or []:
        verdicts = {claims[n].verdict or "UNVERIFIED" for n in numbers}
        worst = next((verdict for verdict in _WORST_FIRST if verdict in verdicts), None)
        pieces.append((piece, worst))
    return pieces


def _cut_answer(text: str, claims: Sequence[ClaimDetail]) -> list[Segment] | None:
    spans = [(*claim.answer_span, n) for n, claim in enumerate(claims) if claim.answer_span]
    return cut(text, spans) if text else None


def cut(text: str, ranges: Iterable[tuple[int, int, int]]) -> list[Segment]:
    """Cut `text` at the ends of `(start, end, number)` ranges, which may overlap.

    The concatenated pieces are the text. A range that is empty or outside the text is skipped. The
    page cannot do this: JavaScript counts UTF-16 units, Python code points, and a range after an
    emoji would shift.
    """
    valid = [(start, end, number) for start, end, number in ranges if 0 <= start < end <= len(text)]
    places = sorted(
        {0, len(text), *(start for start, _, _ in valid), *(end for _, end, _ in valid)}
    )
    pieces: list[Segment] = []
    for start, end in pairwise(places):
        covering = sorted({number for a, b, number in valid if a <= start and end <= b})
        pieces.append((text[start:end], covering))
    return pieces

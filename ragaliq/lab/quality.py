"""Quality week by week: by people's labels, by the judge, and causes of a moved score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise

from ragaliq.lab.alarm import QualityChange, Watch
from ragaliq.lab.labels import (
    LABELLED_METRICS,
    Anchor,
    AnchorFile,
    LabelledAnswer,
    Labels,
    read_labels,
)
from ragaliq.lab.prediction_powered import PredictionPowered, prediction_powered_mean
from ragaliq.records.sqlite_file import Location, companion_file
from ragaliq.records.store import Moment, StoredScore, read_scores
from ragaliq.statistics import Estimate, hajek_mean
from ragaliq.statistics.sampling import WeightedSums

_WEEK = 7 * 86_400.0
_FIRST_MONDAY = 4 * 86_400.0  # Unix time begins on a Thursday
_FEWEST = 8  # labelled answers, below which no interval is worth printing
_FEWEST_PAIRS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityWeek:
    """Figures of a week, or of all time.

    Attributes:
        start: Unix time of its Monday, UTC; None for all time.
        answers: Answers that were scored.
        judge_alone: The mean of the scores of the latest epoch in it, for all traffic.
        fingerprint: That epoch.
        epochs: How many epochs there are in it.
        anchored: The mean as people would judge it, with what it rests on; None with fewer than
            eight labelled answers.
        labels: Labelled claims.
        labelled: Labelled answers.
        uncovered: Answers that were evaluated after the last labels had been drawn.
        joined: `judge_alone` as the latest judge of the series would have it; None where that is
            not known.
    """

    start: float | None
    answers: int
    judge_alone: Estimate
    fingerprint: str
    epochs: int = 1
    anchored: PredictionPowered | None = None
    labels: int = 0
    labelled: int = 0
    uncovered: int = 0
    joined: Estimate | None = None

    @property
    def people(self) -> Estimate | None:
        """The anchored mean."""
        return self.anchored.estimate if self.anchored else None

    @property
    def title(self) -> str:
        """The day it begins, as people write it."""
        if self.start is None:
            return "all"
        return datetime.fromtimestamp(self.start, UTC).strftime("%Y-%m-%d")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeChange:
    """A moved score, split into the judge's part and the application's.

    Attributes:
        time: Unix time of the first score by the new judge.
        before: Fingerprint of the judge of before.
        after: Fingerprint of the judge since then.
        judge_before: Its name.
        judge_after: Its name.
        model_after: Its model, when it has one.
        moved: Mean of the week after the change less that of the week before.
        by_judge: How much of it is the judge: the mean paired difference where both judged the
            same answers; None with fewer than eight of these.
        by_application: The rest.
        pairs: Answers that both judged.
    """

    time: float
    before: str
    after: str
    judge_before: str
    judge_after: str
    model_after: str | None
    moved: Estimate
    by_judge: Estimate | None
    by_application: Estimate | None
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QualitySeries:
    """One metric of one pipeline.

    Attributes:
        pipeline: The application's name for the chain; may be empty.
        metric: The metric.
        higher_is_better: False where a low score is good.
        weeks: Those with scores, in the order of time.
        total: All of them together.
        judge_changes: In the order of time.
        alarms: When its scores moved, with no change of the judge.
        fresh: The last of them, as long as no new reference has been made since.
    """

    pipeline: str
    metric: str
    higher_is_better: bool
    weeks: Sequence[QualityWeek]
    total: QualityWeek
    judge_changes: Sequence[JudgeChange] = ()
    alarms: Sequence[QualityChange] = ()
    fresh: QualityChange | None = None

    @property
    def title(self) -> str:
        """The pipeline and the metric."""
        return f"{self.pipeline or 'no pipeline'}, {self.metric}"

    @property
    def labelled(self) -> QualityWeek | None:
        """The latest week with an anchored mean."""
        return next((week for week in reversed(self.weeks) if week.anchored), None)


@dataclass(slots=True)
class _Rows:
    """The scores of a metric in a pipeline: the latest of each answer, and those of each epoch."""

    watch: Watch
    alarms: list[QualityChange] = field(default_factory=list)
    latest: dict[str, StoredScore] = field(default_factory=dict)
    by_epoch: dict[str, dict[str, StoredScore]] = field(default_factory=dict)


def quality_of(
    scores: Iterable[StoredScore],
    labels: Labels | None = None,
    anchors: Iterable[Anchor] = (),
) -> list[QualitySeries]:
    """The figures of each pipeline and metric.

    The anchored mean is prediction-powered (PPI++, arXiv 2311.01453) with the chances by which
    answers were drawn for labelling and those by which runs were sampled for evaluation. The unit
    is the answer: its claims, which are labelled together and are not independent, enter as one
    score.

    Args:
        scores: Of a store, in the order of time.
        labels: What people say about drawn answers.
        anchors: What several judges made of the same answers.
    """
    series: dict[tuple[str, str], _Rows] = {}
    for score in scores:
        if not score.weight:
            continue
        key = score.pipeline, score.metric
        if key not in series:
            series[key] = _Rows(Watch(*key))
        rows = series[key]
        rows.latest[score.run_id] = score
        rows.by_epoch.setdefault(score.fingerprint, {})[score.run_id] = score
        if change := rows.watch.add(score):
            rows.alarms.append(change)
    known: dict[tuple[str, str], list[Anchor]] = {}
    for anchor in anchors:
        known.setdefault((anchor.pipeline, anchor.metric), []).append(anchor)
    return [
        _series(key, rows, labels or Labels(), known.get(key, []))
        for key, rows in sorted(series.items(), key=lambda item: item[0])
    ]


def stored_quality(
    store: Location,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    pipeline: str | None = None,
) -> list[QualitySeries]:
    """The figures of a store that has labels next to it; none without labels."""
    file = companion_file(store, "labels")
    if not file.exists():
        return []
    scores = read_scores(store, since=since, until=until, pipeline=pipeline)
    return quality_of(
        scores, read_labels(file), AnchorFile(companion_file(store, "anchors")).anchors
    )


def _series(
    key: tuple[str, str],
    rows: _Rows,
    labels: Labels,
    anchors: Sequence[Anchor],
) -> QualitySeries:
    latest = sorted(rows.latest.values(), key=lambda score: score.time)
    by_week: dict[float, list[StoredScore]] = {}
    for score in latest:
        start = (score.time - _FIRST_MONDAY) // _WEEK * _WEEK + _FIRST_MONDAY
        by_week.setdefault(start, []).append(score)
    changes, shifts = _judge_changes(rows, anchors)
    weeks = [
        _joined(_week(start, found, labels), changes, shifts, latest[-1].fingerprint)
        for start, found in by_week.items()
    ]
    return QualitySeries(
        pipeline=key[0],
        metric=key[1],
        higher_is_better=latest[-1].higher_is_better,
        weeks=weeks,
        total=_week(None, latest, labels),
        judge_changes=changes,
        alarms=rows.alarms,
        fresh=rows.watch.change,
    )


def _week(start: float | None, scores: Sequence[StoredScore], labels: Labels) -> QualityWeek:
    fingerprint = scores[-1].fingerprint
    week = QualityWeek(
        start=start,
        answers=len(scores),
        judge_alone=_mean(score for score in scores if score.fingerprint == fingerprint),
        fingerprint=fingerprint,
        epochs=len({score.fingerprint for score in scores}),
    )
    if scores[0].metric not in LABELLED_METRICS:
        return week
    covered = [score for score in scores if labels.covers(score.pipeline, score.time)]
    labelled: list[tuple[StoredScore, LabelledAnswer, float]] = []
    others: list[StoredScore] = []
    for score in covered:
        answer = labels.of(score)
        said = answer.score(score.metric) if answer else None
        if answer is None or said is None:
            others.append(score)
        else:
            labelled.append((score, answer, said))
    week = replace(
        week,
        labels=sum(answer.draw.claims for _, answer, _ in labelled),
        labelled=len(labelled),
        uncovered=len(scores) - len(covered) if labels.reach else 0,
    )
    if len(labelled) < _FEWEST:
        return week
    anchored = prediction_powered_mean(
        [said for _, _, said in labelled],
        [score.score for score, _, _ in labelled],
        [score.score for score in others],
        probabilities=[labels.chance(answer) for _, answer, _ in labelled],
        weights=[score.weight for score, _, _ in labelled],
        unlabelled_weights=[score.weight for score in others],
    )
    return replace(week, anchored=anchored)


def _mean(scores: Iterable[StoredScore]) -> Estimate:
    sums = WeightedSums()
    for score in scores:
        sums.add(score.score, 1.0 / score.weight)
    return sums.estimate()


# One judge after the other.

_ScorePair = tuple[float, float, float]
"""What two judges make of one answer: the score of each, and the weight of the answer."""


def _judge_changes(
    rows: _Rows, anchors: Sequence[Anchor]
) -> tuple[list[JudgeChange], dict[str, Estimate]]:
    """Changes of the judge, and for each fingerprint the difference of the next judge."""
    # By when each epoch first scored: while two judges overlap, they take turns.
    epochs = sorted(rows.by_epoch.values(), key=lambda scores: next(iter(scores.values())).time)
    changes: list[JudgeChange] = []
    shifts: dict[str, Estimate] = {}
    for old, new in pairwise(epochs):
        first, last = next(iter(new.values())), list(old.values())[-1]
        pairs = _paired(old, new, anchors)
        by_judge = _by_judge(pairs)
        moved = _combined(
            _mean(_between(new, first.time, first.time + _WEEK)),
            # Without its overlap with the new judge, unless it has no scores but these.
            _mean(
                _between(old, first.time - _WEEK, first.time)
                or _between(old, last.time - _WEEK, math.inf)
            ),
            sign=-1,
        )
        changes.append(
            JudgeChange(
                time=first.time,
                before=last.fingerprint,
                after=first.fingerprint,
                judge_before=last.judge,
                judge_after=first.judge,
                model_after=first.model,
                moved=moved,
                by_judge=by_judge,
                by_application=by_judge and _combined(moved, by_judge, sign=-1),
                pairs=len(pairs),
            )
        )
        if by_judge is not None:
            shifts[last.fingerprint] = by_judge
    return changes, shifts


def _between(scores: Mapping[str, StoredScore], since: float, until: float) -> list[StoredScore]:
    return [score for score in scores.values() if since <= score.time < until]


def _paired(
    old: Mapping[str, StoredScore], new: Mapping[str, StoredScore], anchors: Sequence[Anchor]
) -> list[_ScorePair]:
    """Answers that both judges scored: in traffic, or as anchors, whichever are more."""
    both = [
        (old[run_id].score, score.score, score.weight)
        for run_id, score in new.items()
        if run_id in old
    ]
    before, after = (next(iter(scores.values())).fingerprint for scores in (old, new))
    first = {each.run_id: each for each in anchors if each.fingerprint == before}
    second = {each.run_id: each for each in anchors if each.fingerprint == after}
    anchored = [
        (first[run_id].score, each.score, each.weight)
        for run_id, each in second.items()
        if run_id in first
    ]
    return max(both, anchored, key=len)


def _by_judge(pairs: Sequence[_ScorePair]) -> Estimate | None:
    if len(pairs) < _FEWEST_PAIRS:
        return None
    least = min(weight for _, _, weight in pairs)
    return hajek_mean(
        [second - first for first, second, _ in pairs],
        [least / weight for _, _, weight in pairs],
        bounds=(-1.0, 1.0),
    )


def _joined(
    week: QualityWeek,
    changes: Sequence[JudgeChange],
    shifts: Mapping[str, Estimate],
    latest: str,
) -> QualityWeek:
    """The week's mean corrected for each later change of the judge."""
    joined, at = week.judge_alone, week.fingerprint
    for change in changes:
        if change.before == at:
            if at not in shifts:
                return week
            joined, at = _combined(joined, shifts[at], sign=1), change.after
    return replace(week, joined=joined) if at == latest else week


def _combined(first: Estimate, second: Estimate, *, sign: int) -> Estimate:
    """Combine two independent figures: the squares of their interval lengths add up."""
    value = first.value + sign * second.value
    down, up = second.value - second.low, second.high - second.value
    if sign < 0:
        down, up = up, down
    return Estimate(
        value=value,
        low=value - math.hypot(first.value - first.low, down),
        high=value + math.hypot(first.high - first.value, up),
        method="combined",
        n=min(first.n, second.n),
        effective_n=min(first.effective_n, second.effective_n),
        confidence=first.confidence,
    )

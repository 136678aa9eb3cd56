"""Sampling of answers for labelling, and the labels read back.

Every answer has a place in the queue: a number from its run id, uniform in (0, 1], divided by its
size, which is larger if the judge is unsure. People label from the front and may stop anywhere: the
answers before a place `t` are a sample with the chances `min(1, size * t)`, which is priority
sampling (Duffield, Lund & Thorup 2007, "Priority sampling for estimation of arbitrary subset sums",
Journal of the ACM 54(6)). Sizes that follow the judge's doubt make the interval narrow (Zrnic &
Candes 2024, "Active statistical inference", arXiv 2403.03208); a least size keeps every chance
above 0 and the weights within a factor of five.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragaliq.core.files import file_errors, owner_only
from ragaliq.core.results import ClaimDetail, EvaluationResult, Verdict
from ragaliq.errors import DatasetError
from ragaliq.records import EvaluationRecord
from ragaliq.records.sqlite_file import Location
from ragaliq.records.store import Moment, StoredScore, read_records, seconds_of

LABELLED_METRICS: Mapping[str, frozenset[Verdict]] = {
    "faithfulness": frozenset({"SUPPORTED"}),
    "hallucination": frozenset({"SUPPORTED"}),
    "contradiction_rate": frozenset({"CONTRADICTED"}),
}
"""Metrics that labels of claims decide: the score is the share of claims with these verdicts."""

_LEAST_SIZE = 0.2

_Model = TypeVar("_Model", bound=BaseModel)


class SamplingFrame(BaseModel):
    """Answers that a labelling session drew from; times are Unix seconds, both included."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    since: float | None = None
    until: float
    pipeline: str | None = None

    def holds(self, pipeline: str, time: float) -> bool:
        """True if an answer of this pipeline and time could have been drawn."""
        return (
            (self.since is None or time >= self.since)
            and time <= self.until
            and self.pipeline in (None, pipeline)
        )


class Draw(BaseModel):
    """Draw of an answer for labelling; kept with each of its labels.

    Attributes:
        run_id: The run that gave the answer.
        pipeline: Its pipeline.
        time: Unix time of its evaluation.
        claim: The number of the claim in the answer, from 0.
        claims: Number of claims in the answer.
        size: Its size, to which its chance is proportional, in [0.2, 1].
        place: Its place in the queue.
        frame: The sampling frame.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    run_id: str
    pipeline: str
    time: float
    claim: int
    claims: int
    size: float = Field(gt=0.0, le=1.0)
    place: float = Field(gt=0.0)
    frame: SamplingFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedAnswer:
    """An answer that was selected for labelling.

    Attributes:
        record: Its latest evaluation, with texts.
        claims: Its claims.
        size: Its size, to which its chance is proportional.
        place: Its place in the queue.
    """

    record: EvaluationRecord
    claims: Sequence[ClaimDetail]
    size: float
    place: float

    def anchors(self, results: Mapping[str, EvaluationResult] | None = None) -> Iterator[Anchor]:
        """Scores of a judge, for comparison with other judges; by default those of the record."""
        for metric, result in (self.record.results if results is None else results).items():
            if metric in LABELLED_METRICS and result.is_measured and result.score is not None:
                yield Anchor(
                    run_id=self.record.run.run_id,
                    pipeline=self.record.run.pipeline,
                    metric=metric,
                    judge=result.judge,
                    model=result.model,
                    fingerprint=result.fingerprint,
                    score=result.score,
                    weight=self.record.run.weight(metric) / self.size,
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelingBatch:
    """Next answers to label.

    Attributes:
        answers: The answers in the order of their places.
        frame: The sampling frame.
        population: Number of answers in the frame.
        without_text: Number of answers that cannot be labelled, since no texts are stored.
    """

    answers: Sequence[SelectedAnswer]
    frame: SamplingFrame
    population: int
    without_text: int


def draw_answers(
    store: Location,
    number: int,
    *,
    done: Collection[str] = (),
    since: Moment | None = None,
    until: Moment | None = None,
    pipeline: str | None = None,
) -> LabelingBatch:
    """Select the next answers to label.

    Only answers that represent traffic and were scored claim by claim are eligible; of several
    evaluations of an answer the latest counts.

    Args:
        store: `sqlite:///path` or a path; with texts.
        number: How many.
        done: Run ids of the answers that are labelled.
        since: Evaluated then or later.
        until: Evaluated before then.
        pipeline: Of this pipeline only.

    Raises:
        DatasetError: The store cannot be read, or holds no answers that can be labelled.
    """
    line: dict[str, tuple[float, str]] = {}
    without_text: set[str] = set()
    newest = -math.inf
    for record in read_records(store, since=since, until=until, pipeline=pipeline):
        result = _claims_of(record)
        if result is None:
            continue
        newest, run_id = record.created_at, record.run.run_id
        if record.case is None or not all(claim.claim for claim in result.claims):
            without_text.add(run_id)
        else:
            line[run_id] = (_place(run_id, _size(result.claims)), record.evaluation_id)
    without_text -= line.keys()
    if not line:
        why = "it holds no answers that were scored claim by claim"
        if without_text:
            why = (
                f"it holds no texts of its {len(without_text):,} answers; store them by "
                "capture_content=True or RAGALIQ_CAPTURE_CONTENT=true"
            )
        raise DatasetError(f"{store}: {why}")
    ahead = heapq.nsmallest(number, (each for run_id, each in line.items() if run_id not in done))
    wanted = {evaluation_id: place for place, evaluation_id in ahead}
    answers = [
        SelectedAnswer(
            record=record,
            claims=result.claims,
            size=_size(result.claims),
            place=wanted[record.evaluation_id],
        )
        for record in read_records(store, since=since, until=until, pipeline=pipeline)
        if record.evaluation_id in wanted and (result := _claims_of(record)) is not None
    ]
    answers.sort(key=lambda answer: answer.place)
    return LabelingBatch(
        answers=answers,
        frame=SamplingFrame(since=seconds_of(since), until=newest, pipeline=pipeline),
        population=len(line),
        without_text=len(without_text),
    )


def _claims_of(record: EvaluationRecord) -> EvaluationResult | None:
    """Result whose claims are labelled."""
    for metric, result in record.results.items():
        is_labelled = metric in LABELLED_METRICS and result.claims and result.is_measured
        # If claims were omitted from the record, the score does not follow from the rest.
        if is_labelled and record.run.weight(metric) and not record.claims_omitted.get(metric):
            return result
    return None


def _size(claims: Sequence[ClaimDetail]) -> float:
    """Size of an answer: the uncertainty of its score by the judge's own confidence.

    It is proportional to the standard deviation of the share of supported claims; unsure claims
    count as undecided.
    """
    variances = [0.25 if c.is_unsure else c.confidence * (1.0 - c.confidence) for c in claims]
    return max(_LEAST_SIZE, 2.0 * math.sqrt(math.fsum(variances)) / len(claims))


def _place(run_id: str, size: float) -> float:
    # A separate hash key: the sampler has chosen the runs by a hash of their ids too.
    name = run_id.encode("utf-8", "surrogatepass")
    digest = blake2b(name, digest_size=7, person=b"ragaliq-label").digest()
    return (int.from_bytes(digest) + 1) / 2.0**56 / size


# Labels as they are read back.


class LabelRow(BaseModel):
    """Line of a file of labels."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    id: str = ""
    label: Verdict | Literal[0, 1]
    score: float | None = Field(default=None, ge=0.0, le=1.0)
    trace_id: str = ""
    draw: Draw | None = None
    question: str = ""
    answer: str = ""
    context: list[str] = Field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswer:
    """An answer whose claims all have a label.

    Attributes:
        draw: Its draw.
        verdicts: Verdicts in the order of the claims; empty if people scored the whole answer.
        given: That score, 1 for a supported answer.
        question: The question.
        answer: The answer.
        context: The context.
    """

    draw: Draw
    verdicts: tuple[Verdict, ...]
    question: str
    answer: str
    context: tuple[str, ...]
    given: float | None = None

    def score(self, metric: str) -> float | None:
        """Score of a metric by the labels, 0 to 1; None if they do not define it."""
        good = LABELLED_METRICS[metric]
        if self.given is not None:
            return self.given if "SUPPORTED" in good else None
        return sum(verdict in good for verdict in self.verdicts) / len(self.verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of a file.

    Attributes:
        answers: Completely labelled answers by run id, and by trace id for a product's annotations
            of traces.
        unfinished: Number of answers with some claims labelled, which do not count yet.
        undrawn: Number of labels of claims without a draw, such as of a results file.
        reach: Last labelled place of each frame's queue.
    """

    answers: Mapping[str, LabelledAnswer] = field(default_factory=dict)
    unfinished: int = 0
    undrawn: int = 0
    reach: Mapping[SamplingFrame, float] = field(default_factory=dict)

    def of(self, score: StoredScore) -> LabelledAnswer | None:
        """Labelled answer that has this score."""
        return self.answers.get(score.run_id) or self.answers.get(score.trace_id)

    def covers(self, pipeline: str, time: float) -> bool:
        """True if an answer of this pipeline and time could have been labelled."""
        return any(frame.holds(pipeline, time) for frame in self.reach)

    def chance(self, answer: LabelledAnswer) -> float:
        """Chance of this answer to be labelled."""
        draw = answer.draw
        places = [
            place for frame, place in self.reach.items() if frame.holds(draw.pipeline, draw.time)
        ]
        return min(1.0, draw.size * max(places))


def read_labels(path: str | Path) -> Labels:
    """Read the labels of answers; ignore a last line that a crash cut short.

    Raises:
        DatasetError: The file is missing or a line is not a label.
    """
    rows: dict[str, dict[int, LabelRow]] = {}
    undrawn = unfinished = 0
    for row in rows_of(path, LabelRow):
        if row.draw is None:
            undrawn += 1
        else:
            rows.setdefault(row.draw.run_id, {})[row.draw.claim] = row
    answers: dict[str, LabelledAnswer] = {}
    reach: dict[SamplingFrame, float] = {}
    for run_id, claims in rows.items():
        last = list(claims.values())[-1]
        assert last.draw is not None  # noqa: S101 - those without went another way
        if len(claims) < last.draw.claims:
            unfinished += 1
            continue
        given = None
        if not isinstance(last.label, str):
            given = float(last.label) if last.score is None else last.score
        answers[run_id] = LabelledAnswer(
            draw=last.draw,
            verdicts=tuple(
                label for _, row in sorted(claims.items()) if isinstance(label := row.label, str)
            ),
            question=last.question,
            answer=last.answer,
            context=tuple(last.context),
            given=given,
        )
        if last.trace_id:
            answers[last.trace_id] = answers[run_id]
        frame, place = last.draw.frame, last.draw.place
        reach[frame] = max(place, reach.get(frame, 0.0))
    return Labels(answers=answers, unfinished=unfinished, undrawn=undrawn, reach=reach)


class Anchor(BaseModel):
    """Score by one judge of an answer that other judges score too; holds no text.

    Attributes:
        run_id: The run that gave the answer.
        pipeline: Its pipeline.
        metric: The metric.
        judge: The judge's name.
        model: Its model, when it has one.
        fingerprint: Of what made the score.
        score: 0 to 1.
        weight: Relative number of answers that it represents.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    run_id: str
    pipeline: str
    metric: str
    judge: str
    model: str | None = None
    fingerprint: str
    score: float = Field(ge=0.0, le=1.0)
    weight: float = Field(gt=0.0)


class AnchorFile:
    """File of scores by several judges of the same answers, one line each.

    Attributes:
        anchors: Those in the file.

    Raises:
        DatasetError: A line is not an anchor.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.anchors = list(rows_of(path, Anchor)) if self.path.exists() else []
        self._known = {self._key(anchor) for anchor in self.anchors}

    @staticmethod
    def _key(anchor: Anchor) -> tuple[str, str, str]:
        return anchor.run_id, anchor.metric, anchor.fingerprint

    def add(self, anchors: Iterable[Anchor]) -> None:
        """Add new ones; once this returns, a crash does not lose them."""
        new = [anchor for anchor in anchors if self._key(anchor) not in self._known]
        self.anchors += new
        self._known.update(map(self._key, new))
        lines = "".join(f"{anchor.model_dump_json()}\n" for anchor in new)
        end_last_line(self.path)
        with file_errors(self.path), open(self.path, "ab", opener=owner_only) as file:
            file.write(lines.encode())

    def has(self, run_id: str, fingerprint: str) -> bool:
        """True if this judge has scored the answer."""
        return any(key[0] == run_id and key[2] == fingerprint for key in self._known)


def rows_of(path: str | Path, model: type[_Model]) -> Iterator[_Model]:
    """Lines of a file, except a last line that a crash cut short.

    Raises:
        DatasetError: The file is missing or a line is not of this kind.
    """
    with file_errors(path):
        lines = Path(path).read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield model.model_validate_json(line)
        except ValidationError as error:
            if 1 < number == len(lines) and not _is_json(line):
                return  # what was being written when the process ended
            places = ", ".join(".".join(map(str, each["loc"])) for each in error.errors())
            raise DatasetError(f"{path}, line {number}: wrong or missing: {places}") from None


def end_last_line(path: Path) -> None:
    """Drop a last line that a crash cut short, and end one without a line break, as editors do.

    What is added to either would be unreadable. A missing file is not made.
    """
    with file_errors(path):
        held = path.read_bytes() if path.exists() else b""
        if held:
            end = held.rfind(b"\n") + 1
            with path.open("ab") as file:
                if _is_json(held[end:]):
                    file.write(b"\n")
                else:
                    file.truncate(end)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True

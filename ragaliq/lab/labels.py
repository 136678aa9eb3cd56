"""Which answers people label, with what chance, and what their labels say.

Every answer has a place in line: a number from its run id, uniform in (0, 1], over its size, which
is larger where the judge is unsure. People label from the front of the line and may stop anywhere:
the answers before a place `t` are a sample in which each had the chance `min(1, size * t)`, which
is priority sampling (Duffield, Lund & Thorup 2007, "Priority sampling for estimation of arbitrary
subset sums", Journal of the ACM 54(6)). Sizes that follow the judge's doubt make the estimate
narrow (Zrnic & Candes 2024, "Active statistical inference", arXiv 2403.03208); a least size keeps
every chance above 0 and the weights within a factor of five.
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
from ragaliq.records.sqlite_file import Location, parse_location
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
    """The answers that a session of labelling drew from; times are Unix seconds, both included."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    since: float | None = None
    until: float
    pipeline: str | None = None

    def holds(self, pipeline: str, time: float) -> bool:
        """Whether an answer of this pipeline, evaluated then, could have been drawn."""
        return (
            (self.since is None or time >= self.since)
            and time <= self.until
            and self.pipeline in (None, pipeline)
        )


class Draw(BaseModel):
    """How an answer came to be labelled; kept with each of its labels.

    Attributes:
        run_id: The run that gave the answer.
        pipeline: Its pipeline.
        time: Unix time of its evaluation.
        claim: The number of the claim in the answer, from 0.
        claims: How many claims the answer has.
        size: What its chance is in proportion to, in [0.2, 1].
        place: Its place in line.
        frame: What it was drawn from.
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
    """An answer to be labelled.

    Attributes:
        record: Its latest evaluation, with texts.
        claims: Its claims.
        size: What its chance is in proportion to.
        place: Its place in line.
    """

    record: EvaluationRecord
    claims: Sequence[ClaimDetail]
    size: float
    place: float

    def anchors(self, results: Mapping[str, EvaluationResult] | None = None) -> Iterator[Anchor]:
        """What a judge said, of several on the same answer; by default the one of the record."""
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
    """The next answers in line.

    Attributes:
        answers: In the order of their places.
        frame: What they were drawn from.
        population: How many answers that were.
        without_text: Answers that cannot be labelled, since no texts are stored.
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
    """The answers at the front of the line.

    Only answers that represent traffic and were scored claim by claim are in the line; of several
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
    """The result of which the claims are labelled."""
    for metric, result in record.results.items():
        is_labelled = metric in LABELLED_METRICS and result.claims and result.is_measured
        # Where claims were omitted from the record, the answer's score is not theirs.
        if is_labelled and record.run.weight(metric) and not record.claims_omitted.get(metric):
            return result
    return None


def _size(claims: Sequence[ClaimDetail]) -> float:
    """In proportion to how uncertain the answer's score is by the judge's own confidence.

    That is the standard deviation of the share of supported claims; what the judge is unsure of
    counts as open.
    """
    variances = [0.25 if c.is_unsure else c.confidence * (1.0 - c.confidence) for c in claims]
    return max(_LEAST_SIZE, 2.0 * math.sqrt(math.fsum(variances)) / len(claims))


def _place(run_id: str, size: float) -> float:
    # With a key of its own: a sampler chose the runs by a hash of their ids as well.
    name = run_id.encode("utf-8", "surrogatepass")
    digest = blake2b(name, digest_size=7, person=b"ragaliq-label").digest()
    return (int.from_bytes(digest) + 1) / 2.0**56 / size


# Labels as they are read back.


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    label: Verdict | Literal[0, 1]
    score: float | None = Field(default=None, ge=0.0, le=1.0)
    trace_id: str = ""
    draw: Draw | None = None
    question: str = ""
    answer: str = ""
    context: list[str] = Field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswer:
    """An answer all claims of which have a label.

    Attributes:
        draw: How it came to be labelled.
        verdicts: One a claim, in the order of the claims; none where people gave the whole answer
            a score.
        given: That score, 1 for an answer that is supported.
        question: What was asked.
        answer: What was answered.
        context: What it was checked against.
    """

    draw: Draw
    verdicts: tuple[Verdict, ...]
    question: str
    answer: str
    context: tuple[str, ...]
    given: float | None = None

    def score(self, metric: str) -> float | None:
        """The metric as the labels have it, 0 to 1; None where they do not say."""
        good = LABELLED_METRICS[metric]
        if self.given is not None:
            return self.given if "SUPPORTED" in good else None
        return sum(verdict in good for verdict in self.verdicts) / len(self.verdicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of a file.

    Attributes:
        answers: By run id, and by trace id where a product's annotation is of a trace; those that
            are labelled whole.
        unfinished: Drawn answers of which some claim has no label: they do not count yet.
        undrawn: Labels of claims that nobody drew, such as of a results file: they have no chance.
        reach: How far the line of each frame is labelled.
    """

    answers: Mapping[str, LabelledAnswer] = field(default_factory=dict)
    unfinished: int = 0
    undrawn: int = 0
    reach: Mapping[SamplingFrame, float] = field(default_factory=dict)

    def of(self, score: StoredScore) -> LabelledAnswer | None:
        """What people say about the answer that has this score."""
        return self.answers.get(score.run_id) or self.answers.get(score.trace_id)

    def covers(self, pipeline: str, time: float) -> bool:
        """Whether an answer of this pipeline, evaluated then, could have been labelled."""
        return any(frame.holds(pipeline, time) for frame in self.reach)

    def chance(self, answer: LabelledAnswer) -> float:
        """The chance that this answer had of being labelled."""
        draw = answer.draw
        places = [
            place for frame, place in self.reach.items() if frame.holds(draw.pipeline, draw.time)
        ]
        return min(1.0, draw.size * max(places))


def read_labels(path: str | Path) -> Labels:
    """Read the labels of answers; a last line that a sudden end cut short does not count.

    Raises:
        DatasetError: The file is missing or a line is not a label.
    """
    rows: dict[str, dict[int, _Row]] = {}
    undrawn = unfinished = 0
    for row in _rows_of(path, _Row):
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
    """What one judge made of an answer that others judge too; holds no text.

    Attributes:
        run_id: The run that gave the answer.
        pipeline: Its pipeline.
        metric: The metric.
        judge: The judge's name.
        model: Its model, when it has one.
        fingerprint: Of what made the score.
        score: 0 to 1.
        weight: What the answer stands for, in proportion.
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
    """What judges made of the same answers, one line each; made when the first is added.

    Attributes:
        anchors: Those in the file.

    Raises:
        DatasetError: A line is not an anchor.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.anchors = list(_rows_of(path, Anchor)) if self.path.exists() else []
        self._known = {self._key(anchor) for anchor in self.anchors}

    @staticmethod
    def _key(anchor: Anchor) -> tuple[str, str, str]:
        return anchor.run_id, anchor.metric, anchor.fingerprint

    def add(self, anchors: Iterable[Anchor]) -> None:
        """Add those that the file does not hold; the end of the process does not lose them."""
        new = [anchor for anchor in anchors if self._key(anchor) not in self._known]
        self.anchors += new
        self._known.update(map(self._key, new))
        lines = "".join(f"{anchor.model_dump_json()}\n" for anchor in new)
        with file_errors(self.path):
            held = self.path.read_bytes() if self.path.exists() else b""
            end = held.rfind(b"\n") + 1
            with open(self.path, "ab", opener=owner_only) as file:
                # A line that a sudden end cut short makes no further one unreadable.
                if _is_json(held[end:]):
                    file.write(b"\n")
                else:
                    file.truncate(end)
                file.write(lines.encode())

    def has(self, run_id: str, fingerprint: str) -> bool:
        """Whether this answer was judged in this epoch."""
        return any(key[0] == run_id and key[2] == fingerprint for key in self._known)


def beside(source: Location, kind: str) -> Path:
    """The file of this kind that belongs to a store, or to its labels: `live.labels.jsonl`."""
    path = parse_location(source)
    name = path.name.removesuffix(".labels.jsonl").removesuffix(".db")
    return path.with_name(f"{name}.{kind}.jsonl")


def _rows_of(path: str | Path, model: type[_Model]) -> Iterator[_Model]:
    with file_errors(path):
        lines = Path(path).read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield model.model_validate_json(line)
        except ValidationError as error:
            if number == len(lines) and not _is_json(line):
                return  # what was being written when the process ended
            places = ", ".join(".".join(map(str, each["loc"])) for each in error.errors())
            raise DatasetError(f"{path}, line {number}: wrong or missing: {places}") from None


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True

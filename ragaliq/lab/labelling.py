"""Claims of evaluated answers for people to label, and the file of their labels."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ragaliq.core.files import file_errors, owner_only
from ragaliq.core.results import Verdict
from ragaliq.datasets.labelled_claims import read_labelled_claims
from ragaliq.errors import DatasetError
from ragaliq.lab.agreement import kappa_estimate
from ragaliq.lab.labels import Draw, LabelingBatch, LabelRow, end_last_line, rows_of
from ragaliq.records import EvaluationRecord
from ragaliq.records.results_file import read_results_file
from ragaliq.statistics import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlabelledClaim:
    """A claim as a person sees it: without the judge's verdict, which would lead them.

    Attributes:
        id: Names run, or case, and claim.
        claim: The statement.
        context: The chunks it is to be checked against.
        question: What was asked.
        group: The pipeline, or the data set, it is from.
        answer: The answer it is from, where the label is about the answer too.
        draw: How that answer was drawn, likewise.
    """

    id: str
    claim: str
    context: tuple[str, ...]
    question: str
    group: str
    answer: str = ""
    draw: Draw | None = None


def claims_to_label(results: str | Path) -> list[UnlabelledClaim]:
    """Claims of a results file, in an order that is independent of their content.

    So the first hundred are a random sample, the same one for two people.

    Raises:
        DatasetError: The file cannot be read, or holds no texts or no claims.
    """
    found: dict[str, UnlabelledClaim] = {}
    without_text = 0
    for record in read_results_file(results):
        claims = list(_claims(record))
        without_text += not claims and any(result.claims for result in record.results.values())
        found.update((claim.id, claim) for claim in claims)
    if not found:
        reason = "there are no claims in it"
        if without_text:
            reason = "it holds no texts; evaluate without --no-text, or with content capture"
        raise DatasetError(f"{results}: {reason}")

    def place(claim: UnlabelledClaim) -> bytes:
        name = claim.id.encode("utf-8", "surrogatepass")
        return blake2b(name, digest_size=8, key=b"order").digest()

    return sorted(found.values(), key=place)


def _claims(record: EvaluationRecord) -> Iterator[UnlabelledClaim]:
    if record.case is None:
        return
    context = tuple(filter(None, record.case.context_texts))
    for result in record.results.values():
        for claim in result.claims:
            # Metrics share their claims, and so do a case's evaluations: named by the text, each is
            # asked about once.
            if claim.claim:
                digest = blake2b(claim.claim.encode("utf-8", "surrogatepass"), digest_size=4)
                yield UnlabelledClaim(
                    id=f"{record.observation}/{digest.hexdigest()}",
                    claim=claim.claim,
                    context=context,
                    question=record.case.query,
                    group=record.run.pipeline,
                )


def claims_of_batch(batch: LabelingBatch) -> list[UnlabelledClaim]:
    """The claims of drawn answers, answer by answer in the order of their places."""
    found = []
    for answer in batch.answers:
        run, case = answer.record.run, answer.record.case
        assert case is not None  # noqa: S101 - only answers with texts are drawn
        for number, claim in enumerate(answer.claims):
            found.append(
                UnlabelledClaim(
                    id=f"{run.run_id}/{number}",
                    claim=claim.claim,
                    context=tuple(filter(None, case.context_texts)),
                    question=case.query,
                    group=run.pipeline,
                    answer=case.response,
                    draw=Draw(
                        run_id=run.run_id,
                        pipeline=run.pipeline,
                        time=answer.record.created_at,
                        claim=number,
                        claims=len(answer.claims),
                        size=answer.size,
                        place=answer.place,
                        frame=batch.frame,
                    ),
                )
            )
    return found


class LabelFile:
    """File of labels, in the format that `bench` and `calibrate` read; see `end_last_line`.

    Args:
        path: The file, continued when it is there; made when the first label is added.

    Attributes:
        done: Ids of the claims that have a label.

    Raises:
        DatasetError: The file holds something else, or cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        rows = rows_of(self.path, LabelRow) if self.path.exists() else ()
        self.done = {row.id for row in rows}
        self._added: list[tuple[str, int]] = []
        end_last_line(self.path)  # before anybody labels: a file that cannot be written says so

    def append(self, claim: UnlabelledClaim, verdict: Verdict) -> None:
        """Add a label; once this returns, a crash does not lose it."""
        row: dict[str, Any] = {
            "id": claim.id,
            "claim": claim.claim,
            "context": list(claim.context),
            "label": verdict,
            "question": claim.question,
            "group": claim.group,
        }
        if claim.draw is not None:
            row |= {"answer": claim.answer, "draw": claim.draw.model_dump()}
        line = json.dumps(row).encode() + b"\n"
        with file_errors(self.path), open(self.path, "ab", opener=owner_only) as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self.done.add(claim.id)
        self._added.append((claim.id, len(line)))

    def undo(self) -> str | None:
        """Remove the last label that was added here; return its claim's id, if there is one."""
        if not self._added:
            return None
        claim_id, length = self._added.pop()
        with file_errors(self.path):
            os.truncate(self.path, self.path.stat().st_size - length)
        self.done.discard(claim_id)
        return claim_id


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAgreement:
    """Agreement of two people.

    Attributes:
        shared: Claims that both labelled.
        agreed: Those with the same label.
        classes: 3, or 2 where a label only says supported or not.
        kappa: Agreement beyond chance; None where both always give the same single label.
        apart: Ids of the claims with different labels.
    """

    shared: int
    agreed: int
    classes: int
    kappa: Estimate | None
    apart: tuple[str, ...]


def compare_labels(first: str | Path, second: str | Path) -> LabelAgreement:
    """Compare the labels of two files, claim by claim.

    Raises:
        DatasetError: A file cannot be read, or they share no claim.
    """
    one = {claim.id: claim for claim in read_labelled_claims(first)}
    other = {claim.id: claim for claim in read_labelled_claims(second)}
    shared = sorted(one.keys() & other.keys())
    if not shared:
        raise DatasetError(f"{first} and {second} have no claim in common")
    three_way = all(side[key].verdict is not None for side in (one, other) for key in shared)
    labels = [
        [str(side[key].verdict if three_way else side[key].is_supported) for key in shared]
        for side in (one, other)
    ]
    apart = [key for key, a, b in zip(shared, *labels, strict=True) if a != b]
    return LabelAgreement(
        shared=len(shared),
        agreed=len(shared) - len(apart),
        classes=3 if three_way else 2,
        kappa=kappa_estimate(*labels),
        apart=tuple(apart),
    )

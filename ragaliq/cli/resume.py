"""Which results of an earlier run still speak of the cases that are there now.

Ids alone do not say so: a row is corrected and keeps its id, and rows without ids are known by
their row, which moves. A case is the same only if what was judged of it is the same.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from ragaliq.cli.console import errors, plain
from ragaliq.core.test_case import ContextChunk, RAGTestCase
from ragaliq.evaluators.claims import DOCUMENT_NAMES
from ragaliq.judges.base import long_digest_of
from ragaliq.records import EvaluationRecord
from ragaliq.records.record import run_id_of
from ragaliq.records.results_file import ResultsFile, read_results_file
from ragaliq.telemetry.content import sendable


def case_digests(case: RAGTestCase) -> tuple[str, str]:
    """What an evaluation rests on, and of that what was asked and shown, each as 40 hex digits.

    Labels are no part of either, nor are metadata but for the names of documents.
    """
    texts = list(zip(case.chunk_ids, case.context_texts, strict=True))
    judged: list[object] = [
        case.query,
        texts,
        case.response,
        case.expected_answer,
        case.expected_facts,
    ]
    asked: list[object] = [case.query, case.context_texts]
    if case.prompt_context:
        judged.append(["prompt", case.prompt_context])
        asked.append(["prompt", case.prompt_context])
    if case.history:
        history = [[turn.role, turn.text, turn.context_texts] for turn in case.history]
        judged.append(history)
        asked.append(history)
    if case.citations:
        judged.append([citation.model_dump() for citation in case.citations])
    # What citations by name name.
    chunks = (chunk for chunk in case.context if isinstance(chunk, ContextChunk))
    if names := [chunk.metadata.get(key) for chunk in chunks for key in DOCUMENT_NAMES]:
        judged.append([str(name) for name in names])
    return long_digest_of(json.dumps(judged)), long_digest_of(json.dumps(asked))


class _Evaluation(NamedTuple):
    case_id: str
    digest: str
    row: int


@dataclass
class Wanted:
    """The evaluations that files of cases ask for, by run id; each case `repeats` times.

    Earlier results differ from others in digests where it `compares`.
    """

    repeats: int
    compares: bool
    evaluations: dict[str, _Evaluation] = field(default_factory=dict)

    def add(self, case: RAGTestCase, row: int) -> None:
        """Take in a case, and the number of its row."""
        digest = case_digests(case)[0] if self.compares else ""
        evaluation = _Evaluation(sendable(case.id), digest, row)
        for repeat in range(self.repeats):
            self.evaluations[run_id_of(case.id, repeat)] = evaluation

    def __contains__(self, record: EvaluationRecord) -> bool:
        return record.run.run_id in self.evaluations

    def sort_out(self, file: ResultsFile) -> None:
        """Keep in a results file what is still true of a case, under the id the case has now.

        Results of cases that are gone stay in the file: they were paid for, and the cases may come
        back. They are not `in` this object.
        """
        stale: dict[str, str] = {}  # what is not about the case of that id, with its digest
        current: set[str] = set()
        for record in read_results_file(file.path):
            run_id, held = record.run.run_id, record.case_digest
            wanted = self.evaluations.get(run_id)
            if wanted is not None and held == wanted.digest:
                current.add(run_id)
            else:
                # A result that speaks of a span is never another run's, however alike the two are.
                stale[run_id] = held if held and record.run.target is None else ""
        stale = {run_id: held for run_id, held in stale.items() if run_id not in current}
        moves = self._moves(stale, current)
        replaced = {run_id for run_id in stale if run_id in self.evaluations} - moves.keys()

        def now(record: EvaluationRecord) -> EvaluationRecord | None:
            run_id = record.run.run_id
            if run_id in replaced:
                return None
            if run_id in moves:
                run_id = moves[run_id]
                case_id = self.evaluations[run_id].case_id
                record = record.renamed(run_id=run_id, case_id=case_id)
            wanted = self.evaluations.get(run_id)
            if wanted is None or record.row == wanted.row:
                return record
            return record.model_copy(update={"row": wanted.row})

        file.rewrite(now)
        gone = len(stale.keys() - moves.keys() - replaced)
        _say(self._cases(replaced - set(moves.values())), "case", "changed since: evaluated again")
        _say(self._cases(moves.values()), "case", "under another id or row now: result kept")
        _say(gone, "result", f"of cases that are gone: not counted, kept in {file.path}")

    def _moves(self, stale: Mapping[str, str], current: Set[str]) -> dict[str, str]:
        """Of which case a stale result is in truth: old run id to new, for the same content."""
        missing: defaultdict[str, list[str]] = defaultdict(list)
        known = set(stale.values())
        for run_id, evaluation in self.evaluations.items():
            if evaluation.digest in known and run_id not in current:
                missing[evaluation.digest].append(run_id)
        moves: dict[str, str] = {}
        for run_id, digest in stale.items():
            if missing[digest]:
                moves[run_id] = missing[digest].pop(0)
        return moves

    def _cases(self, run_ids: Iterable[str]) -> int:
        return len({self.evaluations[run_id].case_id for run_id in run_ids})


def _say(count: int, what: str, became: str) -> None:
    if count:
        errors.print(plain(f"{count:,} {what}{'s' if count > 1 else ''} {became}"))

"""Journal of a job: the results file with earlier valid results, to which new ones are added.

Ids do not tell whether a result is still valid: a corrected row keeps its id, and rows without ids
have their number, which changes. A case is the same only if its evaluated content is.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ragaliq.core.results import Evaluation, JudgeUsage
from ragaliq.core.test_case import DOCUMENT_NAMES, ContextChunk, RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import long_digest_of
from ragaliq.records import EvaluationRecord, evaluation_record
from ragaliq.records.record import run_id_of
from ragaliq.records.results_file import ResultsFile, read_results_file
from ragaliq.telemetry.content import ContentPolicy, sendable


def case_digests(case: RAGTestCase) -> tuple[str, str]:
    """Digests of all that an evaluation depends on, and of question and context; 40 hex digits.

    Labels are not included, and of metadata only the names of documents.
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
    # The document names that citations may refer to.
    chunks = (chunk for chunk in case.context if isinstance(chunk, ContextChunk))
    if names := [chunk.metadata.get(key) for chunk in chunks for key in DOCUMENT_NAMES]:
        judged.append([str(name) for name in names])
    return long_digest_of(json.dumps(judged)), long_digest_of(json.dumps(asked))


class _Wanted(NamedTuple):
    case_id: str
    digest: str
    row: int


@dataclass
class CaseIndex:
    """Evaluations that a job's cases require, by run id; each case `repeats` times."""

    repeats: int = 1
    evaluations: dict[str, _Wanted] = field(default_factory=dict)

    def add(self, case: RAGTestCase, row: int) -> None:
        """Add a case and its row number.

        Raises:
            ConfigurationError: Another case has its id.
        """
        wanted = _Wanted(sendable(case.id), case_digests(case)[0], row)
        for repeat in range(self.repeats):
            if (run_id := run_id_of(case.id, repeat)) in self.evaluations:
                raise ConfigurationError(
                    f"two cases have the id {case.id!r}, by which a journal knows them; give each "
                    "its own"
                )
            self.evaluations[run_id] = wanted

    def __len__(self) -> int:
        return len(self.evaluations)


class Held(NamedTuple):
    """Counts of cases whose earlier results were reassigned or dropped.

    Attributes:
        changed: Cases that have changed since, and are evaluated again.
        moved: Cases with another id or row now, whose result is kept.
        gone: Results of cases that do not exist any more; kept in the file but not counted.
    """

    changed: int = 0
    moved: int = 0
    gone: int = 0


class EvaluationJournal:
    """Results file of a job, which a later job over the same cases continues.

    Args:
        path: The file, `results.jsonl`; continued if it exists and has the same settings, to which
            metrics may be added.
        about: Further settings that must match, such as the name of the data.
        keeps_text: Whether questions, answers, chunks and claims are in the file.
        retry_failed: Whether cases on which the judge failed are evaluated again.

    Attributes:
        path: See above.
        held: Counts of changed, moved and gone cases.
        failed: Number of earlier results on which the judge failed.
        spent: Tokens, requests and money of all results in the file for the job's cases.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        about: Mapping[str, Any] | None = None,
        keeps_text: bool = True,
        retry_failed: bool = False,
    ) -> None:
        self.path = Path(path)
        self.held = Held()
        self.failed = 0
        self.spent = JudgeUsage()
        self._about = dict(about or {})
        self._content = ContentPolicy(on_spans=keeps_text, on_events=keeps_text)
        self._retries_failed = retry_failed
        self._file: ResultsFile | None = None
        self._index = CaseIndex()
        self._incomplete: dict[str, EvaluationRecord] = {}
        self._metrics: Set[str] = frozenset()

    @property
    def keeps_text(self) -> bool:
        """True if questions, answers, chunks and claims are in the file."""
        return self._content.on_sinks

    def open(self, index: CaseIndex, settings: Mapping[str, Any]) -> Iterator[EvaluationRecord]:
        """Open the file and match its results with the cases.

        Args:
            index: The job's cases.
            settings: Settings of the evaluation.

        Yields:
            The earlier results that count.

        Raises:
            DatasetError: It is not a results file, is in use, or was made with other settings.
        """
        made = {**self._about, **settings, "text": self.keeps_text}
        self._index, self._metrics = index, settings["metrics"].keys()
        self._file = ResultsFile(self.path, settings=made)
        if self._retries_failed:
            self._file.rewrite(lambda record: None if record.has_failed else record)
        self._sort_out(self._file)
        for record in self.results():
            self.spent += record.usage
            if self._metrics <= record.results.keys():
                self.failed += record.has_failed
                yield record
            else:  # without its texts: they come again with the metrics that it lacks
                without = record.model_copy(update={"case": None})
                self._incomplete[record.run.run_id] = without

    @property
    def lacking(self) -> dict[str, Collection[str]]:
        """Metrics added since a run was evaluated, by run id."""
        found = self._incomplete.items()
        return {run_id: self._metrics - record.results.keys() for run_id, record in found}

    def with_earlier(self, evaluation: Evaluation) -> Evaluation:
        """Merge an evaluation with the earlier results of its run, where metrics were added."""
        earlier = self._incomplete.get(evaluation.run.run_id)
        if earlier is None:
            return evaluation
        return replace(evaluation, results={**earlier.results, **evaluation.results})

    def add(self, evaluation: Evaluation) -> EvaluationRecord:
        """Add a result; once this returns, a crash of the process does not lose it."""
        assert self._file is not None  # noqa: S101 - for mypy
        run_id = evaluation.run.run_id
        digest, input_digest = case_digests(evaluation.case)
        record = evaluation_record(evaluation, content=self._content).model_copy(
            update={
                "case_digest": digest,
                "input_digest": input_digest,
                "row": self._index.evaluations[run_id].row,
            }
        )
        if run_id in self._incomplete:
            record = record.added_to(self._incomplete.pop(run_id))
        self._file.append(record)
        return record

    def results(self) -> Iterator[EvaluationRecord]:
        """Results in the file for the job's cases."""
        for record in read_results_file(self.path):
            if record.run.run_id in self._index.evaluations:
                yield record

    def close(self) -> None:
        """Close the file; it can still be read."""
        if self._file is not None:
            self._file.close()

    def _sort_out(self, file: ResultsFile) -> None:
        """Keep the results that are still valid, under the ids that their cases have now.

        Results of missing cases stay in the file: they were paid for, and the cases may return.
        """
        evaluations = self._index.evaluations
        stale: dict[str, str] = {}  # what is not about the case of that id, with its digest
        current: set[str] = set()
        for record in read_results_file(file.path):
            run_id, held = record.run.run_id, record.case_digest
            wanted = evaluations.get(run_id)
            if wanted is not None and held == wanted.digest:
                current.add(run_id)
            else:
                # A result that refers to a span never moves to another run, however similar.
                stale[run_id] = held if held and record.run.target is None else ""
        stale = {run_id: held for run_id, held in stale.items() if run_id not in current}
        moves = self._moves(stale, current)
        replaced = {run_id for run_id in stale if run_id in evaluations} - moves.keys()

        def now(record: EvaluationRecord) -> EvaluationRecord | None:
            run_id = record.run.run_id
            if run_id in replaced:
                return None
            if run_id in moves:
                run_id = moves[run_id]
                case_id = evaluations[run_id].case_id
                record = record.renamed(run_id=run_id, case_id=case_id)
            wanted = evaluations.get(run_id)
            if wanted is None or record.row == wanted.row:
                return record
            return record.model_copy(update={"row": wanted.row})

        file.rewrite(now)
        self.held = Held(
            changed=self._cases(replaced - set(moves.values())),
            moved=self._cases(moves.values()),
            gone=len(stale.keys() - moves.keys() - replaced),
        )

    def _moves(self, stale: Mapping[str, str], current: Set[str]) -> dict[str, str]:
        """New run ids of stale results by their old ones, for the same content."""
        missing: defaultdict[str, list[str]] = defaultdict(list)
        known = set(stale.values())
        for run_id, evaluation in self._index.evaluations.items():
            if evaluation.digest in known and run_id not in current:
                missing[evaluation.digest].append(run_id)
        moves: dict[str, str] = {}
        for run_id, digest in stale.items():
            if missing[digest]:
                moves[run_id] = missing[digest].pop(0)
        return moves

    def _cases(self, run_ids: Iterable[str]) -> int:
        return len({self._index.evaluations[run_id].case_id for run_id in run_ids})

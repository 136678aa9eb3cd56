"""`ragaliq label phoenix://PROJECT`: people's annotations of runs in a product, as labels."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

from ragaliq.cli.console import ExitCode, errors, output
from ragaliq.core.files import file_errors, owner_only
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.lab.labels import Draw, SamplingFrame
from ragaliq.reports.wording import number_of
from ragaliq.traces.backends import Annotation, BackendReader

_GOOD = {
    *("pass", "passed", "yes", "true", "good", "correct", "supported", "faithful", "factual"),
    *("grounded", "thumbs up", "1"),
}
_BAD = {
    *("fail", "failed", "no", "false", "bad", "incorrect", "unsupported", "not supported"),
    *("unfaithful", "hallucinated", "hallucination", "ungrounded", "thumbs down", "0"),
}
_LOW_IS_GOOD = ("hallucination",)


def label_from_backend(address: str, out: Path, name: str, *, at_random: bool) -> int:
    """Write a row for each run that people annotated under a name.

    A row has the whole answer as its claim, as `bench` and `calibrate` read it, and the mean of
    people's values as its `score`.

    If the annotated runs are a random sample of the project's, they count in `quality`, each with
    the share of annotated runs in its pipeline.
    """
    if out.exists():
        raise ConfigurationError(f"{out} exists; delete it, or name another file")
    reader = BackendReader(address, fields={})
    names: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    unclear = 0
    for case, found in reader.annotated():
        names.update({each.name for each in found})
        said = [each for each in found if each.name == name]
        if not said:
            continue
        scores = [score for each in said if (score := _score(each)) is not None]
        if not scores or fmean(scores) == 0.5:
            unclear += 1
        else:
            rows.append(_row(case, said, fmean(scores)))
    if not rows:
        shown = ", ".join(f"{each} ({count:,})" for each, count in names.most_common(12))
        detail = f"people annotated {shown}; name one by --annotation" if shown else "none at all"
        raise DatasetError(
            f"{address}: no run has a clear annotation {name!r} of a person: {detail}"
        )
    if at_random:
        _note_chances(rows, reader)
    with file_errors(out), open(out, "x", encoding="utf-8", opener=owner_only) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    good = sum(row["label"] for row in rows)
    answers = number_of(len(rows), "answer")
    output.print(f"{out}: {answers} labelled by people, {good:,} of them as supported")
    if not at_random:
        errors.print("for `ragaliq quality` too, where they were picked at random: --at-random")
    if unclear:
        errors.print(
            f"{unclear:,} more have annotations that are not a score in [0, 1], or disagree"
        )
    return ExitCode.OK


def _note_chances(rows: list[dict[str, Any]], reader: BackendReader) -> None:
    """Mark each row as drawn, with the chance of runs in its pipeline."""
    labelled = Counter(str(row["group"]) for row in rows)
    since, until, _ = reader.window
    until = time.time() if until is None else until
    for row in rows:
        pipeline = str(row["group"])
        frame = SamplingFrame(since=since, until=until, pipeline=pipeline)
        draw = Draw(
            run_id=row["id"],
            pipeline=pipeline,
            time=frame.until,
            claim=0,
            claims=1,
            size=1.0,
            place=labelled[pipeline] / reader.pipelines[pipeline],
            frame=frame,
        )
        row["draw"] = draw.model_dump()


def _score(annotation: Annotation) -> float | None:
    """Score in [0, 1] of a person's annotation, 1 for a supported answer."""
    value = annotation.value
    if isinstance(value, str):
        word = value.strip().lower().replace("_", " ").replace("-", " ")
        return 1.0 if word in _GOOD else 0.0 if word in _BAD else None
    if value is None or not 0.0 <= value <= 1.0:
        return None
    return 1.0 - value if annotation.name in _LOW_IS_GOOD else value


def _row(case: RAGTestCase, said: list[Annotation], score: float) -> dict[str, Any]:
    return {
        "id": case.id,
        "claim": case.response,
        "context": case.context_texts,
        "label": int(score > 0.5),
        "score": score,
        "question": case.query,
        "group": case.evaluated_run.pipeline,
        "metric": said[0].name,
        "trace_id": said[0].trace_id,
        "authors": sorted({each.author for each in said if each.author}),
    }

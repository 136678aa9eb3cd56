"""From nothing to the Monday number: a generated month of a help desk, its labels and its judges.

Makes a store of some 3,900 judged answers of four weeks, has 40 answers labelled each Monday by a
reviewer who reads the context, and leaves the rest to `ragaliq quality`. What happens in the month:
the judge of the first two weeks overlooks half of the wrong claims; in the third week a stricter
one takes its place; on the Tuesday of the last week release 2.1 makes the answers worse.

Run:  python examples/quality/month.py month.db
Then: ragaliq quality month.db --plot month.svg --plan 0.03
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from random import Random

from ragaliq import (
    ClaimDetail,
    EvaluationRecord,
    EvaluationResult,
    RAGTestCase,
    RunInfo,
    SQLiteStore,
)
from ragaliq.lab.labelling import LabelFile, claims_of_batch
from ragaliq.lab.labels import AnchorFile, draw_answers
from ragaliq.records.sqlite_file import companion_file

MONDAY, DAY = 1_791_158_400.0, 86_400.0  # 5 October 2026, UTC
ANSWERS_A_DAY, LABELLED_A_WEEK, JUDGED_BY_BOTH = 400, 40, 120
NEW_JUDGE, NEW_RELEASE = MONDAY + 14 * DAY, MONDAY + 22 * DAY

# Of each judge: how often it overlooks a wrong claim, and how often it blames a right one.
JUDGES = {"lenient": (0.5, 0.01), "strict": (0.1, 0.06)}


def answer(random: Random, time: float) -> RAGTestCase:
    """An answer of one to four claims; wrong ones name another number than the context."""
    hard = 0.45 if time >= NEW_RELEASE else 0.12
    wrong = 0.5 if random.random() < hard else 0.04
    context, claims = [], []
    for part in random.sample(["battery", "frame", "motor", "display"], random.randint(1, 4)):
        months = random.randrange(6, 60, 6)
        context.append(f"The warranty of the {part} is {months} months.")
        said = months + 6 if random.random() < wrong else months
        claims.append(f"The warranty of the {part} is {said} months.")
    return RAGTestCase(
        query="How long is the warranty?", context=context, response=" ".join(claims)
    )


def judged(judge: str, run_id: str, case: RAGTestCase) -> EvaluationResult:
    """What a judge makes of an answer; the same whenever it is asked."""
    random = Random(f"{judge} {run_id}")  # noqa: S311 - a story, not secrets
    overlooks, blames = JUDGES[judge]
    claims = []
    for claim in claims_of(case):
        is_right = claim in case.context_texts
        errs = random.random() < (blames if is_right else overlooks)
        claims.append(
            ClaimDetail(
                claim=claim,
                verdict="SUPPORTED" if is_right != errs else "CONTRADICTED",
                confidence=0.6 if random.random() < (0.6 if errs else 0.05) else 0.97,
            )
        )
    score = sum(claim.verdict == "SUPPORTED" for claim in claims) / len(claims)
    return EvaluationResult(
        evaluator_name="faithfulness",
        score=score,
        passed=score >= 0.7,
        threshold=0.7,
        claims=tuple(claims),
        judge=judge,
        fingerprint=f"{judge}-1",
    )


def claims_of(case: RAGTestCase) -> list[str]:
    """The sentences of the answer."""
    return [f"{claim.rstrip('.')}." for claim in case.response.split(". ")]


def week_of_traffic(start: float, random: Random) -> list[EvaluationRecord]:
    """What a monitor that samples a third of the answers stores in a week."""
    records = []
    for number in range(7 * ANSWERS_A_DAY):
        time = start + number * DAY / ANSWERS_A_DAY
        case, run_id = answer(random, time), f"run-{start:.0f}-{number}"
        chance = 0.8 if len(case.context) > 3 else 0.2  # a rule: long answers more often
        if random.random() >= chance:
            continue
        judge = "strict" if time >= NEW_JUDGE else "lenient"
        records.append(
            EvaluationRecord(
                evaluation_id=f"{run_id}-{judge}",
                run=RunInfo(
                    run_id=run_id,
                    pipeline="help-desk",
                    sampling_probability=chance,
                    ended_at=time,
                    release="2.1" if time >= NEW_RELEASE else "2.0",
                ),
                case_id=run_id,
                created_at=time,
                results={"faithfulness": judged(judge, run_id, case)},
                case=case,
            )
        )
    return records


def label(store: Path, monday: float) -> None:
    """A Monday: 40 answers are drawn from the week before, and a reviewer reads their contexts."""
    labels, anchors = (
        LabelFile(companion_file(store, "labels")),
        AnchorFile(companion_file(store, "anchors")),
    )
    drawing = draw_answers(store, LABELLED_A_WEEK, since=monday - 7 * DAY)
    for claim in claims_of_batch(drawing):
        labels.append(claim, "SUPPORTED" if claim.claim in claim.context else "CONTRADICTED")
    for drawn in drawing.answers:
        anchors.add(drawn.anchors())


def judge_again(store: Path) -> None:
    """What `ragaliq quality --rejudge 120` does: the new judge scores answers of before, too."""
    anchors = AnchorFile(companion_file(store, "anchors"))
    for drawn in draw_answers(store, JUDGED_BY_BOTH, until=NEW_JUDGE).answers:
        case = drawn.record.case or RAGTestCase(query="", response="")
        result = judged("strict", drawn.record.run.run_id, case)
        by_old = list(drawn.anchors())
        by_new = {"judge": result.judge, "fingerprint": result.fingerprint, "score": result.score}
        anchors.add([*by_old, *(anchor.model_copy(update=by_new) for anchor in by_old)])


async def main(store: Path) -> None:
    random = Random(2026)  # noqa: S311 - as above
    sink = SQLiteStore(store)
    for week in range(4):
        start = MONDAY + week * 7 * DAY
        await sink.write(week_of_traffic(start, random))
        label(store, start + 7 * DAY)
    judge_again(store)
    await sink.aclose()
    print(f"{store}: four weeks, labelled; now run: ragaliq quality {store} --plan 0.03")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "month.db")))

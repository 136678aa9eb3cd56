"""A gate: how well the embedded judge tells supported claims of usual answers from others.

`answers.jsonl` was written and labelled here: claims close to their context, some with another
number or name, some denied, some about what the context does not cover. `ragaliq judge bench`
reads it too. A change of the judge that lowers a figure below its floor needs a reason.
"""

from pathlib import Path

from ragaliq import LocalJudge
from ragaliq.datasets import read_labelled_claims
from ragaliq.judges.calibration import raw_support
from ragaliq.lab.agreement import auroc, balanced_accuracy

CLAIMS = Path(__file__).with_name("answers.jsonl")


async def test_the_embedded_judge_tells_supported_claims_from_others_as_well_as_it_did():
    claims = list(read_labelled_claims(CLAIMS))
    judge = LocalJudge()
    verdicts = [await judge.verify_claim(each.claim, list(each.context)) for each in claims]
    labels = [each.is_supported for each in claims]
    area = auroc([raw_support(verdict) for verdict in verdicts], labels)
    accuracy = balanced_accuracy(labels, [each.verdict == "SUPPORTED" for each in verdicts])

    assert (len(claims), sum(labels)) == (96, 48)
    assert area >= 0.96, f"AUROC {area:.3f}"
    assert accuracy >= 0.93, f"balanced accuracy {accuracy:.3f}"

"""How the embedded judge does on claims that were written without a look at it.

`labelled_claims.jsonl` has 300 claims of 30 domains, half of them supported, paraphrased as people
do. Every figure is on the page of benchmarks; one that changes is changed there, with its reason.
"""

import json
import re
from pathlib import Path

from ragaliq.core.test_case import RAGTestCase
from ragaliq.evaluators import FaithfulnessEvaluator
from ragaliq.judges import LocalJudge
from ragaliq.judges.calibration import raw_support
from ragaliq.lab.agreement import auroc, balanced_accuracy

HERE = Path(__file__).parent
CLAIMS = [
    json.loads(line) for line in (HERE / "labelled_claims.jsonl").read_text("utf-8").splitlines()
]
PAGE = (HERE.parents[2] / "docs" / "pages" / "benchmarks.md").read_text("utf-8")


def on_page(name):
    """The figure of a row of the page's table of these claims."""
    found = re.search(rf"^\| {re.escape(name)} \| ([\d.]+)(?: of \d+)? \|$", PAGE, re.MULTILINE)
    assert found, name
    return float(found[1])


async def test_the_page_has_the_figures_on_three_hundred_paraphrased_claims():
    judge = LocalJudge()
    verdicts = [await judge.verify_claim(row["claim"], [row["context"]]) for row in CLAIMS]
    labels = [row["supported"] for row in CLAIMS]
    passed = [each.verdict == "SUPPORTED" for each in verdicts]
    contradicted = [
        not row
        for row, each in zip(labels, verdicts, strict=True)
        if each.verdict == "CONTRADICTED"
    ]

    assert (len(CLAIMS), sum(labels), len({row["domain"] for row in CLAIMS})) == (300, 150, 30)
    assert round(auroc([raw_support(each) for each in verdicts], labels), 2) == on_page("AUROC")
    assert round(balanced_accuracy(labels, passed), 2) == on_page("balanced accuracy")
    true_ones = sum(ok for ok, label in zip(passed, labels, strict=True) if label)
    false_ones = sum(not ok for ok, label in zip(passed, labels, strict=True) if not label)
    assert true_ones == on_page("true claims SUPPORTED")
    assert false_ones == on_page("false claims not SUPPORTED")
    assert len(contradicted) == on_page("claims CONTRADICTED")
    assert sum(contradicted) == on_page("false ones of these")


async def test_the_page_has_the_figures_on_whole_answers_with_and_without_a_planted_error():
    metric, passed, failed = FaithfulnessEvaluator(), 0, 0
    for domain in dict.fromkeys(row["domain"] for row in CLAIMS):
        rows = [row for row in CLAIMS if row["domain"] == domain]
        true = [row["claim"] for row in rows if row["supported"]]
        wrong = next(row["claim"] for row in rows if not row["supported"])
        for claims, is_good in ((true, True), ([*true[:4], wrong], False)):
            case = RAGTestCase(query="", context=[rows[0]["context"]], response=" ".join(claims))
            result = await metric.evaluate(case, LocalJudge())
            passed += is_good and result.passed is True
            failed += not is_good and result.passed is False
    assert passed == on_page("good answers that pass")
    assert failed == on_page("answers with a planted error that fail")

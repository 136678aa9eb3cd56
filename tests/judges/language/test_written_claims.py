"""The written claims: their form, and how the embedded judge does on the domains kept for tests."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from ragaliq.judges import LocalJudge
from ragaliq.judges.calibration import raw_support
from ragaliq.lab.agreement import auroc, balanced_accuracy

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "data" / "written_claims").glob("*.jsonl"))
PAGE = (ROOT / "docs" / "pages" / "benchmarks.md").read_text("utf-8")
TESTS = {
    "financial_results",
    "medicine_leaflets",
    "research_abstracts",
    "software_faqs",
    "store_policies",
    "travel_rules",
}
KINDS = {
    "SUPPORTED": {"paraphrase", "joined", "derived"},
    "CONTRADICTED": {"number", "negation", "role", "time", "condition", "scope", "cause"},
    "NOT_ENOUGH_INFO": {"absent"},
}


def passages(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_every_passage_has_claims_of_its_kinds_and_an_id_of_its_own():
    read = [each for path in FILES for each in passages(path)]
    assert len(read) == len({each["id"] for each in read}) == 1500
    assert {path.stem: len(passages(path)) for path in FILES} == dict.fromkeys(
        {each["domain"] for each in read}, 50
    )
    for each in read:
        assert set(each) == {"id", "domain", "style", "passage", "claims"}, each["id"]
        assert 45 <= len(each["passage"].split()) <= 300, each["id"]
        assert len({claim["text"] for claim in each["claims"]}) == len(each["claims"]), each["id"]
        assert all(claim["kind"] in KINDS[claim["label"]] for claim in each["claims"]), each["id"]
    kinds = Counter(claim["kind"] for each in read for claim in each["claims"])
    assert set(kinds) == set().union(*KINDS.values())


def on_page(name):
    """The figure of the embedded judge in a row of the page's table of written claims."""
    table = PAGE.partition("## Written claims")[2].partition("\n## ")[0]
    found = re.search(rf"^\| {re.escape(name)} \| ([\d.]+) ", table, re.MULTILINE)
    assert found, name
    return float(found[1])


async def test_the_page_has_the_embedded_judges_figures_on_the_domains_for_tests():
    judge = LocalJudge()
    rows = [
        (claim, await judge.verify_claim(claim["text"], [each["passage"]]))
        for path in FILES
        if path.stem in TESTS
        for each in passages(path)
        for claim in each["claims"]
    ]
    labels = [claim["label"] == "SUPPORTED" for claim, _ in rows]
    passed = [verdict.verdict == "SUPPORTED" for _, verdict in rows]
    right = [claim["label"] == verdict.verdict for claim, verdict in rows]
    area = auroc([raw_support(verdict) for _, verdict in rows], labels)

    assert len(rows) == pytest.approx(2400, abs=30)
    assert round(area, 2) == on_page("AUROC")
    assert round(balanced_accuracy(labels, passed), 2) == on_page("balanced accuracy")
    assert round(sum(right) / len(right), 2) == on_page("three verdicts right")

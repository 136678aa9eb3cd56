"""Fails a build when an answer says what its context does not: run it with `pytest`.

In CI, add `--ragaliq-judge=claude --ragaliq-max-cost=2.00` once the key is in the job's secrets.
"""

from pathlib import Path

import pytest

from ragaliq import RAGTestCase
from ragaliq.datasets import read_cases
from ragaliq.pytest_plugin import RagAssertionError, assert_rag

CASES = {case.id: case for case in read_cases(Path(__file__).with_name("answers.csv"))}


def answer(case: RAGTestCase) -> RAGTestCase:
    """Call your application here, with `case.query`; this one has its answers in the file."""
    return case


@pytest.mark.parametrize("name", ["opening"])
def test_the_answer_keeps_to_its_context(name: str) -> None:
    assert_rag(answer(CASES[name]), faithfulness=0.8)


@pytest.mark.parametrize("name", ["refunds", "weight"])
def test_a_made_up_claim_is_found(name: str) -> None:
    with pytest.raises(RagAssertionError, match=r"NOT_ENOUGH_INFO|CONTRADICTED"):
        assert_rag(answer(CASES[name]), faithfulness=0.8)

"""Memory stays flat over many cases."""

import gc
import tracemalloc

import pytest

from ragaliq import LocalJudge, RAGTestCase, evaluate

pytestmark = pytest.mark.benchmark

_CASES = 1000
_ROUNDS = 5
_ALLOWED = 2 * 2**20


def _score(start):
    cases = (
        RAGTestCase(
            query=f"What about number {i}?",
            context=[f"Number {i} was made in {1900 + i % 100}." * 5, "Parcels leave on Mondays."],
            response=f"Number {i} was made in {1900 + i % 90}. It is sold in red.",
        )
        for i in range(start, start + _CASES)
    )
    run = evaluate(cases, judge=LocalJudge())
    return run.metrics["faithfulness"].measured


def test_memory_is_flat_over_five_thousand_cases():
    assert _score(0) == _CASES  # fills what is cached on purpose
    gc.collect()
    tracemalloc.start()
    held = []
    for round_ in range(_ROUNDS):
        assert _score(round_ * _CASES) == _CASES
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    print("\nKiB held after each thousand cases:", [size // 1024 for size in held])  # noqa: T201
    assert held[-1] - held[0] < _ALLOWED

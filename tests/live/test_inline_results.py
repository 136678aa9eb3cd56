"""Results of an inline monitor: found by their run, and kept within bounds."""

from __future__ import annotations

import uuid

import pytest

from ragaliq.live import run as inline_module


@pytest.fixture
def inline(monitor_of):
    return monitor_of(mode="inline", evaluators=["faithfulness"])


def run(monitor, case, run_id):
    monitor.begin(run_id).submit(case)


def score(result):
    return result.results["faithfulness"].score


async def test_a_run_is_found_by_the_id_object_its_framework_has(inline, case):
    run_id = uuid.uuid4()
    run(inline, case, str(run_id))
    assert score(await inline.result(run_id)) == 0.5


async def test_results_are_kept_for_a_bounded_number_of_runs(inline, case, monkeypatch):
    monkeypatch.setattr(inline_module, "_KEPT", 3)
    for number in range(5):
        run(inline, case, str(number))
    found = [await inline.result(str(number)) for number in range(5)]
    assert [result is not None for result in found] == [False, False, True, True, True]


async def test_results_are_kept_as_far_as_their_texts_fit(inline, case, monkeypatch):
    monkeypatch.setattr(inline_module, "_KEPT_BYTES", 2 * case.size)
    for run_id in ("a", "b", "c", "c"):
        run(inline, case, run_id)
    assert await inline.result("a") is None
    assert [score(await inline.result(run_id)) for run_id in "bc"] == [0.5, 0.5]
    run(inline, case.model_copy(update={"query": "q" * 10_000}), "large")
    assert score(await inline.result("large")) == 0.5
    assert await inline.result("c") is None

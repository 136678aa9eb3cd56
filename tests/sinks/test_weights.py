"""Means over stored scores weigh each metric by its own chance."""

from __future__ import annotations

import math

import pytest

from ragaliq.sinks.sqlite import SQLiteStore, score_buckets


@pytest.fixture
def means(tmp_path, record_of, result_of):
    """Stores runs of one score each, given with what is known of their sampling."""

    async def store(*runs):
        records = [
            record_of(number, [result_of(score), result_of(score, name="relevance")], **sampling)
            for number, (score, sampling) in enumerate(runs)
        ]
        path = SQLiteStore(tmp_path / "store.db")
        await path.write(records)
        await path.aclose()
        buckets = {
            name: score_buckets(path.path, name, seconds=1e9)
            for name in ("faithfulness", "relevance")
        }
        return {name: bucket.weighted_mean for name, (bucket,) in buckets.items()}

    return store


async def test_a_metric_of_its_own_rate_has_its_own_weight(means):
    rare = {"sampling_probability": 0.5}
    rare["metric_probabilities"] = {"faithfulness": 0.5, "relevance": 0.1}
    found = await means((0.0, rare), (1.0, {}))
    assert math.isclose(found["faithfulness"], 1 / (2 + 1))
    assert math.isclose(found["relevance"], 1 / (10 + 1))


async def test_runs_chosen_by_feedback_do_not_count(means):
    complaint = {"represents_traffic": False, "sampling_rules": ("tag", "feedback")}
    found = await means((0.0, complaint), (1.0, {}), (0.5, {}))
    assert found == {"faithfulness": 0.75, "relevance": 0.75}


async def test_complaints_alone_say_nothing_about_all_traffic(means):
    found = await means((0.25, {"represents_traffic": False}))
    assert found == {"faithfulness": None, "relevance": None}

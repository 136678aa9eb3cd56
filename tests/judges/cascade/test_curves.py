"""Accuracy against cost: on made-up verdicts whose worth is known, and from files to figures."""

from __future__ import annotations

import gzip
import json
import random
from functools import cache

import curves
import pytest
from curves import Screened, screened_sets

from ragaliq import ClaimVerdict, DatasetError


@cache
def screened(knows, count=1200, seed=0):
    """Claims on which the screen's support is the chance of being supported, as far as it knows."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        support = draw.random()
        chance = support if knows else 0.5
        verdict = (
            ClaimVerdict(verdict="SUPPORTED", confidence=support)
            if support >= 0.5
            else ClaimVerdict(verdict="NOT_ENOUGH_INFO", confidence=1.0 - support)
        )
        rows.append(Screened(verdict, draw.random() < chance, number // 3))
    return tuple(rows)


@cache
def by_share(*, knows):
    return {point.target: point for point in curves.curve(screened(knows), [0.8])[0.8]}


def test_the_ends_are_the_screen_and_the_second_judge():
    points = by_share(knows=True)
    assert points[0.0].balanced == pytest.approx(0.75, abs=0.03)  # of max(p, 1 - p), p uniform
    assert points[1.0].balanced == pytest.approx(0.8)
    assert points[1.0].balanced_alike == pytest.approx(0.8, abs=0.02)
    assert [points[0.0].calls, points[1.0].calls] == pytest.approx([0.0, 1.0], abs=0.02)


def test_a_screen_that_knows_where_it_is_weak_beats_both():
    points = by_share(knows=True)
    assert points[0.5].calls == pytest.approx(0.5, abs=0.05)
    # Of the half it is sure of, 87.5 % are right.
    assert points[0.5].balanced == pytest.approx(0.8375, abs=0.02)
    assert points[0.5].balanced_alike < points[0.5].balanced
    assert curves.reaches(list(points.values()))


def test_a_screen_that_knows_nothing_escalates_everything():
    points = by_share(knows=False)
    assert {point.calls for point in points.values()} == {1.0}
    assert points[0.6].balanced == pytest.approx(0.8)
    assert not curves.reaches(list(points.values()))
    assert curves.at_calls(list(points.values()), 0.6) is None  # it never escalated so little


@pytest.fixture
def folder(tmp_path):
    """Two small sets of two families: a claim is supported if its words are there."""
    draw = random.Random(1)
    words = [f"{a}{b}" for a in "bcdfg" for b in ("alto", "ember", "inder", "ovel")]
    for name in ("fever_dev", "wice_claim_dev"):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            for number in range(240):
                given = draw.sample(words, 12)
                label = number % 2
                claim = given[:4] if label else [*given[:2], *draw.sample(words, 2)]
                row = {"context": [f"The {' '.join(given)}."], "claim": f"The {' '.join(claim)}."}
                file.write(json.dumps({**row, "label": label}) + "\n")
    return tmp_path


def test_curves_are_made_from_labelled_files(folder, capsys):
    assert curves.main([str(folder), "--accuracy", "0.8", "--labels", "120"]) == 0
    printed = capsys.readouterr().out
    assert "right in 80.0%" in printed
    rows = [line.split(" | ") for line in printed.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows] == ["| set", "| fever_dev", "| wice_claim_dev"] * 2
    assert [row[7] for row in rows[1:3]] == ["80.0"] * 2


def test_one_family_is_not_enough(folder):
    (folder / "wice_claim_dev.jsonl.gz").unlink()
    with pytest.raises(DatasetError, match="no two families"):
        list(screened_sets(folder))

"""Accuracy against cost, from files to figures: `make cascade-curves`."""

import gzip
import json
import random

import curves
import pytest


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

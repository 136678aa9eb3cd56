"""The model card says what the shipped judge does."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ragaliq.judges.local import LocalJudge
from ragaliq.judges.local.training import measure_families
from ragaliq.judges.local.training_data import SETS, read_data

ROOT = Path(__file__).parents[3]
CARD = (ROOT / "docs/pages/embedded-judge.md").read_text(encoding="utf-8")
DATA = Path(os.environ.get("RAGALIQ_DATA", ROOT.parent / "shared" / "data"))
FAILURE = re.compile(
    r"^\| (.+?) \| (.+?) \| (SUPPORTED|CONTRADICTED|NOT_ENOUGH_INFO) \| .+ \|$", re.MULTILINE
)
FIGURES = re.compile(r"^\| (\w+) \| [\d,]+ \| \d+ % \| ([\d. /]+) \| ([\d. /]+) \|$", re.MULTILINE)


@pytest.mark.parametrize(("claim", "context", "verdict"), FAILURE.findall(CARD))
async def test_the_judge_still_fails_where_the_card_says_so(claim, context, verdict):
    assert (await LocalJudge().verify_claim(claim, [context])).verdict == verdict


def test_the_card_shows_every_set():
    assert sorted(name for name, _, _ in FIGURES.findall(CARD)) == sorted(SETS)


@pytest.mark.skipif(not DATA.is_dir(), reason="the training data are not here")
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_recipe_gives_the_figures_of_the_card():
    measured = {
        name: tuple(
            f"{area:.3f} / {100 * accuracy:.1f}".removeprefix("0")
            for area, accuracy in (
                (row.recall_auroc, row.recall_accuracy),
                (row.model_auroc, row.model_accuracy),
            )
        )
        for name, row in measure_families(read_data(DATA)).items()
    }
    assert {name: (recall, model) for name, recall, model in FIGURES.findall(CARD)} == measured

"""The model card says what the shipped judge does."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from ragaliq.errors import ConfigurationError
from ragaliq.judges import LocalJudge
from ragaliq.judges.local.training.data import SETS, read_data
from ragaliq.judges.local.training.figures import (
    SIX,
    fingerprint,
    measure_families,
    record,
    reproduce,
    write_tables,
)
from ragaliq.judges.local.verdict import load_parameters

ROOT = Path(__file__).parents[3]
PARAMETERS = ROOT / "ragaliq/judges/local/parameters"
CARD = (ROOT / "docs/pages/embedded-judge.md").read_text(encoding="utf-8")
FIGURES = json.loads((PARAMETERS / "figures.json").read_text(encoding="utf-8"))
DATA = Path(os.environ.get("RAGALIQ_DATA", ROOT.parent / "shared" / "data"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the training data are not here")
FAILURE = re.compile(
    r"^\| (.+?) \| (.+?) \| (SUPPORTED|CONTRADICTED|NOT_ENOUGH_INFO) \| .+ \|$", re.MULTILINE
)


@pytest.mark.parametrize(("claim", "context", "verdict"), FAILURE.findall(CARD))
async def test_the_judge_still_fails_where_the_card_says_so(claim, context, verdict):
    assert (await LocalJudge().verify_claim(claim, [context])).verdict == verdict


def test_the_figures_belong_to_the_shipped_parameters():
    assert FIGURES["parameters"] == fingerprint(PARAMETERS)


def test_the_card_shows_the_figures_that_were_measured():
    assert f"\n{FIGURES['tables']}\n" in CARD
    assert sorted(FIGURES["left_out"]) == sorted(SETS)
    for name, row in FIGURES["left_out"].items():
        accuracy = f"{100 * row['model']['accuracy']:.1f}"
        assert re.search(rf"^\| {name} \|.*/ {accuracy} \(", CARD, re.MULTILINE)


def test_the_judge_reaches_what_is_asked_of_it():
    rows = [FIGURES["left_out"][name] for name in SIX]
    assert sum(row["model"]["accuracy"] for row in rows) / len(rows) >= 0.715
    for row in rows:
        assert row["model"]["accuracy"] >= row["recall"]["accuracy"] - 0.025


def test_the_parameters_are_small():
    assert sum(path.stat().st_size for path in PARAMETERS.iterdir()) < 1_000_000


@needs_data
@pytest.mark.parametrize("name", ["q2_wow", "begin_dev", "wice_claim_dev"])
def test_the_shipped_parameters_give_the_figures_recorded_with_them(name):
    data = read_data(DATA, sets=(name,))
    assert list(reproduce(data[name], load_parameters())) == FIGURES["shipped"][name]


@needs_data
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_recipe_gives_the_figures_of_the_card():
    data = read_data(DATA)
    figures = measure_families(data)
    shipped = {name: reproduce(rows, load_parameters()) for name, rows in data.items()}
    assert json.loads(json.dumps(record(figures, shipped, PARAMETERS))) == FIGURES


def test_tables_take_their_place_and_a_card_without_one_is_reported(tmp_path):
    card = tmp_path / "card.md"
    card.write_text("before\n")
    with pytest.raises(ConfigurationError, match=r"card\.md has no place for the tables"):
        write_tables(card, "| a |\n")
    begin, end = "<!-- written by `make train-local-judge` -->", "<!-- end -->"
    card.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    for _ in range(2):
        write_tables(card, "| a |\n")
    assert card.read_text() == f"before\n{begin}\n\n| a |\n\n{end}\nafter\n"

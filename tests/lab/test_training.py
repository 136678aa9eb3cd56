"""The recipe behind the shipped parameters, and the pages that say what they do."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from ragaliq.errors import DatasetError
from ragaliq.judges import LocalJudge
from ragaliq.judges.local.verdict import Features, load_parameters
from training.__main__ import main
from training.data import FAMILIES, SETS, count_words, read_data
from training.figures import SIX, measure_families, record, reproduce
from training.fitting import train

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("RAGALIQ_DATA", ROOT.parent / "shared" / "data"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the training data are not here")

PARAMETERS = ROOT / "ragaliq/judges/local/parameters"
CARD = (ROOT / "docs/pages/embedded-judge.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "docs/pages/benchmarks.md").read_text(encoding="utf-8")
FIGURES = json.loads((PARAMETERS / "figures.json").read_text(encoding="utf-8"))
FAILURE = re.compile(
    r"^\| (.+?) \| (.+?) \| (SUPPORTED|CONTRADICTED|NOT_ENOUGH_INFO) \| .+ \|$", re.MULTILINE
)
FACTS = [("Paris", "France", 1900), ("Rome", "Italy", 1871), ("Oslo", "Norway", 1905)]


@pytest.fixture
def tiny(tmp_path):
    """Every set, with a few made-up claims."""
    rows = []
    for city, country, year in FACTS:
        context = [f"{city} is the capital of {country} and grew large after {year}."]
        rows += [
            {"context": context, "claim": f"{city} is the capital of {country}.", "label": 1},
            {"context": context, "claim": f"{city} grew after {year}.", "label": 1},
            {"context": context, "claim": f"{city} grew after {year + 7}.", "label": 0},
            {"context": context, "claim": "Lemons hardly ever ripen in winter.", "label": 0},
        ]
    for name in (name for names in FAMILIES.values() for name in names):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return tmp_path


def test_the_recipe_prints_figures_and_writes_the_same_files_each_time(tiny, tmp_path, capsys):
    written = []
    for run in ("one", "two"):
        assert main([str(tiny), "--out", str(tmp_path / run)]) == 0
        files = sorted((tmp_path / run).iterdir())
        written.append({path.name: path.read_bytes() for path in files})
    assert sorted(written[0]) == ["figures.json", "model.json", "words.json.gz"]
    assert written[0] == written[1]
    assert "wice_claim_dev" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content",
    [b"not gzip", gzip.compress(b'{"claim": 1}', mtime=0)],
    ids=["no gzip", "a field is missing"],
)
def test_unreadable_data_are_named_without_their_text(tiny, content):
    (tiny / "q2_wow.jsonl.gz").write_bytes(content)
    with pytest.raises(DatasetError, match=r"cannot read q2_wow\.jsonl\.gz"):
        read_data(tiny)


def test_every_shipped_weight_has_the_sign_that_makes_sense():
    parameters = load_parameters()
    best = Features(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0)
    worst = Features(0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0)
    assert parameters.support(best) > 0.7
    assert parameters.support(worst) < 0.1


@needs_data
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_the_recipe_gives_the_shipped_weights_but_for_what_later_rules_moved():
    data = read_data(DATA)
    fitted, _ = train(data, tuple(data), count_words(data, tuple(data)))
    shipped = load_parameters()
    assert fitted.intercept == pytest.approx(shipped.intercept, abs=0.1)
    assert fitted.weights == pytest.approx(shipped.weights, abs=0.1)


# The pages.


@pytest.mark.parametrize(("claim", "context", "verdict"), FAILURE.findall(CARD))
async def test_the_judge_still_fails_where_the_card_says_so(claim, context, verdict):
    assert (await LocalJudge().verify_claim(claim, [context])).verdict == verdict


def test_the_page_shows_the_figures_that_were_measured_on_the_shipped_parameters():
    assert FIGURES["parameters"] == load_parameters().digest
    assert sum(path.stat().st_size for path in PARAMETERS.iterdir()) < 1_000_000
    assert f"\n{FIGURES['tables']}\n" in BENCHMARKS
    assert sorted(FIGURES["left_out"]) == sorted(SETS)
    for name, row in FIGURES["left_out"].items():
        shown = re.search(rf"^\| {name} \|.*/ ([\d.]+) \(", BENCHMARKS, re.MULTILINE)
        # The page rounds the accuracy itself, the figures have four decimals of it.
        assert shown
        assert float(shown[1]) == pytest.approx(100 * row["model"]["accuracy"], abs=0.06)


def test_the_judge_reaches_what_is_asked_of_it():
    rows = [FIGURES["left_out"][name] for name in SIX]
    assert sum(row["model"]["accuracy"] for row in rows) / len(rows) >= 0.715
    for row in rows:
        assert row["model"]["accuracy"] >= row["recall"]["accuracy"] - 0.025


@needs_data
@pytest.mark.parametrize("name", ["q2_wow", "begin_dev"])
def test_the_shipped_parameters_give_the_figures_recorded_with_them(name):
    data = read_data(DATA, sets=(name,))
    # Python 3.12 and later add floats more exactly, which may order two scores the other way round.
    figures = pytest.approx(FIGURES["shipped"][name], abs=1.1e-4)
    assert reproduce(data[name], load_parameters()) == figures


@needs_data
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_recipe_gives_the_figures_of_the_page():
    data = read_data(DATA)
    figures = measure_families(data)
    shipped = {name: reproduce(rows, load_parameters()) for name, rows in data.items()}
    assert json.loads(json.dumps(record(figures, shipped, PARAMETERS))) == FIGURES

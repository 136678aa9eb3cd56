"""CONTRIBUTING names files and functions that exist, and keeps its pictures and lists short."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MODULES = {
    "Monitor": "ragaliq.live.monitor",
    "RunHandle": "ragaliq.live.run",
    "RunLog": "ragaliq.capture.run",
    "Scorer": "ragaliq.scoring.scorer",
    "SinkSet": "ragaliq.records.sinks",
    "check_claims": "ragaliq.evaluators.claims",
    "context_in_prompts": "ragaliq.capture.evidence",
    "evaluate_case": "ragaliq.evaluators.case",
}
STEPS = re.findall(r"^.{15} *\d+  ([A-Za-z_.]+)  ", TEXT, re.MULTILINE)


def rows_below(head):
    """The first cells of the table with this first cell in its head."""
    table = TEXT.partition(f"\n| {head} |")[2].partition("\n\n")[0]
    return re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)


def test_the_way_of_an_answer_has_ten_functions():
    assert len(STEPS) == len(set(STEPS)) == 10


@pytest.mark.parametrize("name", STEPS)
def test_a_function_on_the_way_exists(name):
    found = importlib.import_module(MODULES[name.partition(".")[0]])
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:ragaliq|integrations|tests|docs)/[\w/.-]+)`", TEXT)))
)
def test_a_path_that_is_named_exists(path):
    assert (ROOT / path).exists()


def test_the_rooms_of_the_picture_are_the_packages():
    picture = TEXT.partition("```\nannexes ")[2].partition("```")[0]
    names = {
        path.stem
        for path in (ROOT / "ragaliq").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    rooms = names - {"__init__", "__main__", "_version"}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", picture)} == set()


def test_twelve_changes_and_at_most_twenty_words_are_listed():
    assert len(rows_below("to change")) == 12
    assert len(rows_below("word")) <= 20

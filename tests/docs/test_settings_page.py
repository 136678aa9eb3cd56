"""The settings page lists every argument and every variable, and none that does not exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from ragaliq.scoring.settings import read_settings

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/pages/settings.md"
SOURCES = [*(ROOT / "ragaliq").rglob("*.py"), *(ROOT / "integrations").rglob("*.py")]
OTHERS = ("ANTHROPIC", "LANGFUSE", "MLFLOW", "OPENAI", "OPENINFERENCE", "OTEL", "PHOENIX")


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location(
        "settings_tables", ROOT / "docs/settings_tables.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def named_in_code(*prefixes):
    pattern = re.compile(rf"[\"'`]((?:{'|'.join(prefixes)})_[A-Z_]*[A-Z])[\"'`]")
    return {name for source in SOURCES for name in pattern.findall(source.read_text())}


def test_the_tables_are_as_the_code_says(generator):
    page = PAGE.read_text()
    assert page == generator.written(page), "run: python docs/settings_tables.py"


def test_every_variable_of_ours_is_listed_and_none_is_made_up():
    listed = set(re.findall(r"^\| `(RAGALIQ_[A-Z_]+)`", PAGE.read_text(), re.MULTILINE))
    read = {f"RAGALIQ_{name.upper()}" for name in type(read_settings()).model_fields}
    assert listed == read | named_in_code("RAGALIQ")


def test_every_variable_of_others_is_listed():
    names = {name for name in named_in_code(*OTHERS) if not name.startswith("OTEL_EXPORTER_")}
    names.discard("MLFLOW_EXPERIMENT")  # a kind of place in its interface
    assert {name for name in names if f"`{name}`" not in PAGE.read_text()} == set()


def test_an_argument_nobody_described_is_an_error(generator):
    class Undescribed:
        """Has an argument."""

        def __init__(self, *, argument: int = 1) -> None:
            self.argument = argument

    with pytest.raises(ValueError, match="does not document argument"):
        generator.table(Undescribed)

"""The settings page lists every variable, and none that does not exist."""

import re
from pathlib import Path

from command_line import ragaliq
from ragaliq.scoring.settings import read_settings

__all__ = ["ragaliq"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/pages/settings.md"
SOURCES = [*(ROOT / "ragaliq").rglob("*.py"), *(ROOT / "integrations").rglob("*.py")]
OTHERS = ("ANTHROPIC", "LANGFUSE", "MLFLOW", "OPENAI", "OPENINFERENCE", "OTEL", "PHOENIX")


def named_in_code(*prefixes):
    pattern = re.compile(rf"[\"'`]((?:{'|'.join(prefixes)})_[A-Z_]*[A-Z])[\"'`]")
    return {name for source in SOURCES for name in pattern.findall(source.read_text())}


def listed():
    return set(re.findall(r"^\| `(RAGALIQ_[A-Z_]+)`", PAGE.read_text(), re.MULTILINE))


def test_every_variable_of_ours_is_listed_and_none_is_made_up():
    read = {f"RAGALIQ_{name.upper()}" for name in type(read_settings()).model_fields}
    assert listed() == read | named_in_code("RAGALIQ")


def test_the_doctor_knows_every_variable_that_is_listed(ragaliq):
    done = ragaliq("doctor", "--offline", **dict.fromkeys(listed(), "x"), code=2)
    assert "nothing reads" not in done.stdout + done.stderr


def test_every_variable_of_others_is_listed():
    names = {name for name in named_in_code(*OTHERS) if not name.startswith("OTEL_EXPORTER_")}
    names.discard("MLFLOW_EXPERIMENT")  # a kind of place in its interface
    assert {name for name in names if f"`{name}`" not in PAGE.read_text()} == set()

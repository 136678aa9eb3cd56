"""Commands of annexes: listed with the rest, and with the extra that they lack."""

from importlib.metadata import (
    EntryPoint,
    PackageNotFoundError,
    distribution,
    entry_points,
    version,
)

import pytest


@pytest.fixture
def without_scipy(monkeypatch):
    def found(name):
        if name == "scipy":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr("ragaliq.cli.annexes.version", found)


def test_help_lists_an_annexes_commands_with_what_they_do(ragaliq):
    shown = ragaliq("--help").stdout
    assert "Measure judges on labelled claims" in shown
    assert "pip install" not in shown
    assert "bench" in ragaliq("judge", "--help").stdout


def test_help_names_the_extra_that_is_missing(ragaliq, without_scipy):
    lines = ragaliq("--help").stdout.splitlines()
    for name in ("label", "judge", "calibrate", "quality"):
        (line,) = [each for each in lines if each.split()[:1] == [name]]
        assert "pip install 'ragaliq[lab]'" in line
    assert "pip install 'ragaliq[lab]'" in ragaliq("judge", "--help").stdout


def test_a_command_whose_extra_is_missing_says_what_to_install(ragaliq, without_scipy):
    done = ragaliq("judge", "bench", "labels.jsonl", "--judge", "local", code=2)
    assert "`ragaliq judge` needs pip install 'ragaliq[lab]'" in done.stderr


def test_an_annex_that_cannot_even_be_imported_is_listed(ragaliq, monkeypatch):
    def load(self):
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy")

    monkeypatch.setattr(EntryPoint, "load", load)
    assert "pip install 'ragaliq[lab]'" in ragaliq("--help").stdout
    ragaliq("quality", "live.db", code=2)


def test_every_command_of_an_annex_names_an_extra_that_there_is():
    known = distribution("ragaliq").metadata.get_all("Provides-Extra")
    for point in entry_points(group="ragaliq.commands"):
        assert set(point.extras) <= set(known), point.name


def test_no_command_of_the_main_house_needs_the_laboratory(ragaliq, without_scipy):
    assert "faithfulness" in ragaliq("metrics").stdout

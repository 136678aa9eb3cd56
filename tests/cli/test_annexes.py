"""Commands of annexes: listed with the rest, and with the extra that they lack."""

import subprocess
import sys
from importlib.metadata import (
    PackageNotFoundError,
    distribution,
    entry_points,
    version,
)
from textwrap import dedent

import pytest


@pytest.fixture
def without(monkeypatch):
    """Makes distributions appear to be missing."""
    missing = set()

    def found(name):
        if name in missing:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr("ragaliq.cli.annexes.version", found)
    return lambda *names: missing.update(names)


@pytest.fixture
def without_scipy(without):
    without("scipy")


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


def test_help_says_what_a_command_does_and_needs_where_no_extra_is_installed(ragaliq, without):
    without("faststream", "opentelemetry-proto", "redis", "scikit-learn", "scipy", "starlette")
    shown = ragaliq("--help").stdout
    for what in ("Fit a judge's confidence", "Receive traces", "Evaluate the jobs"):
        assert what in shown
    lines = shown.splitlines()
    for point in entry_points(group="ragaliq.commands"):
        (line,) = [each for each in lines if each.split()[:1] == [point.name]]
        assert ("pip install" in line) == bool(point.extras)


def test_the_commands_are_loaded_without_what_their_extras_bring():
    script = """
        import sys
        from importlib.metadata import entry_points

        for name in "faststream google.protobuf redis scipy sklearn starlette uvicorn".split():
            sys.modules[name] = None
        for point in entry_points(group="ragaliq.commands"):
            point.load()
    """
    subprocess.run([sys.executable, "-c", dedent(script)], check=True)


def test_a_worker_needs_one_broker_of_several(ragaliq, without):
    without("nats-py", "aio-pika", "aiokafka")  # what faststream's own extras bring
    assert "pip install" not in ragaliq("worker", "--help").stdout
    without("redis")
    done = ragaliq("worker", "--broker", "nats://127.0.0.1", code=2)
    assert "'ragaliq[redis]' or 'ragaliq[rabbitmq]' or 'ragaliq[nats]'" in done.stderr


def test_every_command_of_an_annex_names_an_extra_that_there_is():
    known = distribution("ragaliq").metadata.get_all("Provides-Extra")
    for point in entry_points(group="ragaliq.commands"):
        assert set(point.extras) <= set(known), point.name


def test_no_command_of_the_main_house_needs_the_laboratory(ragaliq, without_scipy):
    assert "faithfulness" in ragaliq("metrics").stdout

"""`ragaliq worker` with settings that cannot be used: one error, in words."""

from __future__ import annotations

import sys

import pytest

from ragaliq import CeleryExecutor, ConfigurationError
from ragaliq.cli.app import run


@pytest.fixture
def worker(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.delenv("RAGALIQ_BROKER_URL", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    monkeypatch.setattr(sys, "path", sys.path.copy())

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["ragaliq", "worker", *arguments])
        code = run()
        return code, capsys.readouterr().err

    return command


BROKER = ("--broker", "redis://:hunter2@127.0.0.1:1/0")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "RAGALIQ_BROKER_URL"),
        (["--broker", "http://u:hunter2@h"], "the broker: the address must begin with redis://"),
        (["--broker", "http://u:hunter2@h"], "this one begins with http:"),
        (["--broker", ":hunter2@h"], "this one has no scheme (10 characters)"),
        (["--broker", "hunter2"], "this one has no scheme (7 characters)"),
        ([*BROKER, "--app", "nowhere"], "write it as module:name"),
        ([*BROKER, "--app", "no_such_module:x"], "no_such_module"),
        ([*BROKER, "--app", "json:JSONDecoder"], "is no WorkerSettings"),
        ([*BROKER, "--app", "json:decoder"], "is no WorkerSettings"),
        ([*BROKER, "--model", "m"], "goes with --judge"),
        ([*BROKER, "--judge", "oracle"], "oracle"),
        ([*BROKER, "--metrics", "politeness"], "politeness"),
        ([*BROKER, "--sink", "mongodb://x"], "sqlite:///path"),
    ],
)
def test_a_wrong_option_is_said_at_the_start(worker, arguments, words):
    code, told = worker(*arguments)
    assert code == 2
    assert words in told
    assert "hunter2" not in told


def test_health_of_nobody_is_an_exit_code(worker):
    code, told = worker("health", "--timeout", "0.2", *BROKER)
    assert code == 1
    assert told.startswith("no worker answers: the broker cannot be reached (")
    assert "RAGALIQ_BROKER_URL" in told
    assert "hunter2" not in told


@pytest.mark.parametrize("does", [["list"], ["retry"], ["drop", "--all"]])
def test_what_was_set_aside_on_a_broker_that_is_away_is_one_error(worker, does):
    code, told = worker("set-aside", *does, *BROKER)
    assert code == 4
    assert told.startswith("ragaliq: the broker cannot be reached (")
    assert "hunter2" not in told


def test_without_celery_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "celery", None)
    monkeypatch.delitem(sys.modules, "ragaliq.worker_tier.celery_application", raising=False)
    with pytest.raises(ConfigurationError, match=r"pip install 'ragaliq\[celery\]'"):
        CeleryExecutor("redis://127.0.0.1:1/0")


@pytest.mark.parametrize("arguments", [[], ["health"], ["set-aside", "list"]])
@pytest.mark.parametrize("missing", ["celery", "redis"])
def test_a_command_without_its_libraries_says_what_to_install(
    worker, monkeypatch, missing, arguments
):
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "ragaliq.worker_tier.celery_application", raising=False)

    code, told = worker(*arguments, *BROKER)

    assert code == 2
    assert "pip install 'ragaliq[celery]'" in told

"""`ragaliq worker` with settings that cannot be used: one error, in words."""

from __future__ import annotations

import os
import sys

import pytest

from ragaliq import ConfigurationError
from ragaliq.cli.app import run
from ragaliq.worker import BrokerExecutor


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
        (["--broker", ":hunter2@h"], "this one, of 10 characters, does not"),
        ([*BROKER, "--app", "nowhere"], "write it as MODULE:NAME"),
        ([*BROKER, "--app", "no_such_module:x"], "no_such_module"),
        ([*BROKER, "--app", "json:JSONDecoder"], "is not a WorkerSettings"),
        ([*BROKER, "--app", "json:decoder"], "is not a WorkerSettings"),
        ([*BROKER, "--model", "m"], "goes with judge"),
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


@pytest.mark.parametrize(
    "command",
    [
        ["--judge", "local"],
        *(["dead-letters", *does] for does in (["list"], ["retry"], ["drop", "--all"])),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "address",
    [
        "redis://:hunter2@127.0.0.1:9/0",
        "amqp://u:hunter2@127.0.0.1:9/",
        pytest.param("nats://u:hunter2@127.0.0.1:9", marks=pytest.mark.slow),  # waits 20 s
    ],
)
def test_a_broker_that_is_not_there_ends_a_command_in_a_line(worker, caplog, command, address):
    code, told = worker(*command, "--broker", address)
    assert code == 4
    assert "ragaliq: the broker cannot be reached (" in told
    assert "Traceback" not in told + caplog.text
    assert "hunter2" not in told + caplog.text


def test_health_is_the_age_of_the_heartbeat(worker, tmp_path, monkeypatch):
    assert worker("health")[0] == 2
    monkeypatch.setenv("RAGALIQ_WORKER_HEARTBEAT", str(tmp_path / "beat"))
    assert worker("health") == (1, "there is no heartbeat\n")
    (tmp_path / "beat").touch()
    assert worker("health") == (0, "the last heartbeat was 0 s ago\n")
    os.utime(tmp_path / "beat", (1.0, 1.0))
    assert worker("health")[0] == 1


def test_dead_letters_are_deleted_only_by_name_or_all(worker):
    assert worker("dead-letters", "drop", *BROKER)[0] == 2
    code, told = worker("dead-letters", "list", "--broker", "kafka://127.0.0.1:1")
    assert (code, "Kafka's own tools" in told) == (2, True)


@pytest.mark.parametrize(
    ("url", "extra"),
    [("redis", "redis"), ("amqp", "rabbitmq"), ("nats", "nats"), ("kafka", "kafka")],
)
def test_without_its_libraries_it_says_what_to_install(worker, monkeypatch, url, extra):
    for name in ("redis", "rabbit", "nats", "kafka"):
        monkeypatch.setitem(sys.modules, f"faststream.{name}", None)
    for arguments in ([], ["dead-letters", "list"]):
        code, told = worker(*arguments, "--broker", f"{url}://127.0.0.1:1")
        assert code == 2
        assert f"pip install 'ragaliq[{extra}]'" in told
    with pytest.raises(ConfigurationError, match=f"ragaliq\\[{extra}\\]"):
        BrokerExecutor(f"{url}://127.0.0.1:1")

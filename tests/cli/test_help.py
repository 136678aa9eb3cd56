"""Help, completion, and what the terminal shows first."""

import os
import subprocess
import sys

import pytest
import typer

from ragaliq.cli.app import app

WRITES = ("evaluate", "compare", "report", "cases", "label", "calibrate", "quality", "judge bench")


def commands(command, words=()):
    if words:
        yield words
    context = typer.Context(command)
    for word in getattr(command, "list_commands", lambda _: [])(context):
        yield from commands(command.get_command(context, word), (*words, word))


@pytest.mark.parametrize("words", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_every_command_explains_itself_for_h(ragaliq, words):
    shown = ragaliq(*words, "-h").stdout
    assert shown == ragaliq(*words, "--help").stdout
    assert shown.startswith(f"Usage: ragaliq {' '.join(words)} ")  # no frames
    assert "completion" not in shown


@pytest.mark.parametrize("command", WRITES)
def test_every_command_that_writes_a_file_takes_o(ragaliq, command):
    assert "-o, --out" in ragaliq(*command.split(), "-h").stdout


def test_help_is_as_wide_as_the_terminal(ragaliq):
    narrow = ragaliq("evaluate", "-h", COLUMNS="60").stdout.splitlines()
    wide = ragaliq("evaluate", "-h", COLUMNS="150").stdout.splitlines()
    assert max(map(len, narrow)) <= 60
    assert 100 < max(map(len, wide)) <= 150


def test_options_stand_in_groups(ragaliq):
    lines = ragaliq("evaluate", "-h").stdout.splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        "Arguments:",
        "Options:",
        "Input options:",
        "Judge options:",
        "Score options:",
        "Result options:",
        "Limits:",
    ]


def test_the_shell_can_complete_commands_and_options():
    done = subprocess.run(
        [sys.executable, "-m", "ragaliq.cli"],
        env={
            **os.environ,
            "PYTHONPATH": ":".join(sys.path),
            "_RAGALIQ_COMPLETE": "complete_bash",
            "COMP_WORDS": "ragaliq evaluate --fail",
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--fail-under" in done.stdout


def test_a_collector_that_is_down_is_one_line(write_cases):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ragaliq.cli",
            "evaluate",
            write_cases({"query": "q", "context": ["It is."], "response": "It is."}),
        ],
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(("RAGALIQ_", "OTEL_"))},
            "PYTHONPATH": ":".join(sys.path),
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    about = [line for line in done.stderr.splitlines() if "export" in line or "collector" in line]
    assert len(about) == 1
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in about[0]


def test_doctor_names_faults_before_the_lists(ragaliq):
    done = ragaliq("doctor", code=2, RAGALIQ_JUGDE="local")
    assert "did you mean 'RAGALIQ_JUDGE'?" in done.stderr
    assert "OpenTelemetry spans" in done.stdout
    assert "nothing is wrong" not in done.stdout


def test_doctor_says_first_that_nothing_is_wrong(ragaliq):
    lines = ragaliq("doctor").stdout.splitlines()
    assert lines[1] == "nothing is wrong here"
    providers = [line for line in lines if line.startswith("OpenTelemetry")]
    assert len(providers) == 3
    assert all("no provider" in line for line in providers)

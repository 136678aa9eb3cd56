"""`estimate`, `metrics`, `doctor`, and what all commands have in common."""

import re
import subprocess
import sys

import pytest

from ragaliq import __version__

GOOD = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
BAD = GOOD | {"response": "The shop opens at 9. Parrots juggle seventeen lanterns."}


def test_estimate_names_requests_tokens_and_dollars_and_calls_nobody(ragaliq, write_cases):
    done = ragaliq(
        "estimate", write_cases(GOOD, BAD), "--judge", "claude",
        ANTHROPIC_API_KEY="not-a-key", ANTHROPIC_BASE_URL="http://127.0.0.1:9",
    )  # fmt: skip

    assert "2 cases" in done.stdout
    assert "$0." in done.stdout


def test_metrics_are_listed_with_their_thresholds(ragaliq):
    done = ragaliq("metrics")

    assert "faithfulness" in done.stdout
    assert "0.7" in done.stdout


def test_the_doctor_tries_the_judge_and_prints_no_secret(ragaliq):
    done = ragaliq(
        "doctor",
        ANTHROPIC_API_KEY="sk-secret",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://user:pass-word@collector:4318/path?token=hidden",
        RAGALIQ_BROKER_URL="redis://:hunter2@broker:6379/0",
        RAGALIQ_SAMPLE_RATE="0.5",
    )

    assert "judge local works: it tells a supported claim from another, 0 tokens" in done.stdout
    assert "http://collector:4318" in done.stdout
    assert "redis://broker:6379" in done.stdout
    assert "RAGALIQ_SAMPLE_RATE" in done.stdout
    for secret in ("sk-secret", "pass-word", "hidden", "hunter2"):
        assert secret not in done.stdout + done.stderr


def test_the_doctor_says_what_is_wrong_with_a_judge(ragaliq):
    assert "ANTHROPIC_API_KEY" in ragaliq("doctor", "--judge", "claude", code=4).stderr


def test_a_reader_that_goes_away_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m ragaliq.cli metrics | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.startswith("metric")
    assert "Traceback" not in done.stderr


def test_files_are_written_although_nobody_reads_the_output(tmp_path):
    (tmp_path / "cases.csv").write_text("question,context,answer\nWhen?,At 9.,At 9.\n")
    command = [sys.executable, "-m", "ragaliq.cli", "evaluate", "cases.csv", "--out", "page.html"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as started:
        started.stdout.close()

    assert started.returncode == 0
    assert (tmp_path / "page.html").exists()


def test_the_package_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "ragaliq", "--version"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout.strip()) == (0, __version__)


def test_without_its_libraries_the_command_says_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TYPER], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert done.stderr.strip().endswith("pip install 'ragaliq[cli]'")


WITHOUT_TYPER = """
import sys
sys.modules["typer"] = None
sys.argv = ["ragaliq", "metrics"]
from ragaliq.cli import main
main()
"""


def test_the_demo_judges_built_in_answers_and_owns_up_to_what_it_gets_wrong(ragaliq):
    done = ragaliq("demo", NO_COLOR="1")

    assert "CONTRADICTED    A ticket costs 15 euros." in done.stdout
    assert "evidence: Tickets cost 12 euros" in done.stdout
    assert "NOT_ENOUGH_INFO A shuttle leaves the airport hourly." in done.stdout
    # The swapped names are the one thing it misses; should it learn that, the demo must say so.
    assert done.stdout.count("WRONG: this is CONTRADICTED") == 2
    assert "4 answers, 8 claims; 2 verdicts are wrong" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_demo_needs_no_framework_no_key_and_no_folder_of_its_own(tmp_path):
    script = (
        "import sys; sys.argv = ['ragaliq', 'demo']; from ragaliq.cli.app import run; code = run();"
        "assert not {'langchain_core', 'llama_index', 'anthropic'} & set(sys.modules);"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "verdicts are wrong" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        "evaluate", "estimate", "compare", "report", "label", "calibrate", "doctor", "worker",
        "judge bench", "judge compare", "traces explain", "worker health",
        "worker dead-letters drop",
    ],
)  # fmt: skip
def test_help_names_no_type_of_python(ragaliq, command):
    done = ragaliq(*command.split(), "--help")

    assert not re.findall(r"<(?:list\[|str|int|float|path|Path|%)[^>]*>", done.stdout)
    assert not re.findall(r"(\S+=\S+) +\1", done.stdout)

"""The judge from the environment's variables, and what `doctor` says about them."""

import pytest

from loopback import MessagesServer
from ragaliq import LocalJudge
from ragaliq.lab.calibration import fit_calibration

CASE = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}
WRONG = {
    "RAGALIQ_JUDGE": "bogus",
    "RAGALIQ_SAMPLE_RATE": "7",
    "RAGALIQ_EXECUTOR": "redis://:hunter2@h",
    "RAGALIQ_ENABLED": "maybe",
    "RAGALIQ_CALIBRATION": "nope.json",
    "RAGALIQ_BROKER_URL": ":hunter2@broker",
    "RAGALIQ_CAPTURE_CONTENT": "perhaps",
    "RAGALIQ_TELEMETRY_RELATION": "cousin",
    "RAGALIQ_TELEMETRY_CLAIM_DETAIL": "poems",
    "RAGALIQ_TELEMETRY_ON_UNSAMPLED": "shout",
}


@pytest.fixture
def calibration(tmp_path):
    support = [(i + 0.5) / 200 for i in range(200)]
    made = fit_calibration(LocalJudge(), support, [x > 0.4 for x in support])
    made.save(tmp_path / "cal.json")
    return made


def test_the_environments_judge_is_asked_and_named_before_and_after(ragaliq, write_cases):
    with MessagesServer() as server:
        done = ragaliq(
            "evaluate", write_cases(CASE), "--metrics", "faithfulness",
            RAGALIQ_JUDGE="claude", RAGALIQ_MODEL="claude-haiku-4-5",
            ANTHROPIC_API_KEY="not-a-key", ANTHROPIC_BASE_URL=server.url,
        )  # fmt: skip
        asked = len(server.requests)

    said = "judge claude (claude-haiku-4-5), uncalibrated; from RAGALIQ_JUDGE, RAGALIQ_MODEL"
    assert asked
    assert said in done.stdout
    assert done.stderr.index(said) == 0


@pytest.mark.parametrize("command", ["evaluate", "estimate"])
def test_a_wrong_judge_in_the_environment_is_refused_by_name(ragaliq, write_cases, command):
    done = ragaliq(command, write_cases(CASE), RAGALIQ_JUDGE="bogus", code=2)

    assert "RAGALIQ_JUDGE: no judge 'bogus'; use local, claude, claude:MODEL" in done.stderr


def test_options_win_over_the_environment(ragaliq, write_cases):
    done = ragaliq("evaluate", write_cases(CASE), "--judge", "local", RAGALIQ_JUDGE="claude")

    assert "judge local, uncalibrated\n" in done.stdout


def test_the_environments_calibration_is_used(ragaliq, write_cases, calibration):
    cases = write_cases(CASE)
    done = ragaliq("evaluate", cases, RAGALIQ_CALIBRATION="cal.json")
    assert f"judge local, {calibration.id}; from RAGALIQ_CALIBRATION" in done.stdout

    done = ragaliq("evaluate", cases, RAGALIQ_CALIBRATION="nope.json", code=3)
    assert "RAGALIQ_CALIBRATION: nope.json: No such file" in done.stderr


def test_a_calibration_of_another_judge_names_its_variable(ragaliq, write_cases, calibration):
    done = ragaliq(
        "evaluate", write_cases(CASE), "--judge", "claude",
        ANTHROPIC_API_KEY="not-a-key", RAGALIQ_CALIBRATION="cal.json", code=2,
    )  # fmt: skip

    assert f"RAGALIQ_CALIBRATION: calibration {calibration.id} cannot be used" in done.stderr


def test_an_estimate_is_of_the_environments_judge_and_needs_no_key(ragaliq, write_cases):
    done = ragaliq("estimate", write_cases(CASE), RAGALIQ_JUDGE="local>claude")

    assert "judge local>claude (" in done.stdout
    assert "from RAGALIQ_JUDGE" in done.stdout


def test_the_doctor_names_all_of_them_at_once(ragaliq):
    done = ragaliq("doctor", "--offline", **WRONG, code=2)

    told = [line for line in done.stderr.splitlines() if line.startswith("wrong: ")]
    assert sorted(line.split()[1].rstrip(":") for line in told) == sorted(WRONG)
    assert "hunter2" not in done.stdout + done.stderr


def test_the_doctor_finds_a_misspelt_variable_and_keeps_its_value_to_itself(ragaliq):
    done = ragaliq(
        "doctor",
        "--offline",
        RAGALIQ_JUGDE="claude",
        RAGALIQ_BROKER_ULR="redis://:hunter2@h",
        code=2,
    )

    unread = "RAGALIQ_JUGDE: nothing reads a variable of this name"
    assert f"{unread} (did you mean 'RAGALIQ_JUDGE'?" in done.stderr
    assert "did you mean 'RAGALIQ_BROKER_URL'?" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr


def test_the_doctor_tries_the_judge_that_the_environment_names(ragaliq):
    done = ragaliq("doctor", RAGALIQ_JUDGE="claude", ANTHROPIC_API_KEY="", code=2)
    assert (
        "RAGALIQ_JUDGE: no API key for Claude: set ANTHROPIC_API_KEY, or in Python" in done.stderr
    )

    with MessagesServer() as server:
        done = ragaliq("doctor", ANTHROPIC_API_KEY="not-a-key", ANTHROPIC_BASE_URL=server.url)
        assert server.requests
    assert "judge claude (" in done.stderr


@pytest.mark.parametrize(
    ("options", "variables"),
    [((), {"RAGALIQ_CALIBRATION": "cal.json"}), (("--calibration", "cal.json"), {})],
)
def test_a_calibration_is_not_written_over(ragaliq, write_cases, calibration, options, variables):
    cases = write_cases({})

    done = ragaliq("judge", "bench", cases, *options, "--out", "cal.json", **variables, code=2)

    assert "--out cal.json would replace the calibration" in done.stderr

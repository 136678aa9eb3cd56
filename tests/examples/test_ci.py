"""The files for CI: each command in them runs as it stands, for main and then for a change."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "examples" / "ci"
FROM_ELSEWHERE = ("pip install", "cd examples/ci")


def github_steps(event):
    """The commands of the workflow for an event, each with its environment."""
    (job,) = yaml.safe_load((FOLDER / "github-actions.yml").read_text())["jobs"].values()
    for step in job["steps"]:
        condition = step.get("if", "")
        if "run" in step and ("event_name" not in condition or f"'{event}'" in condition):
            yield step["run"], step.get("env", {})


def gitlab_steps(policy):
    (job,) = yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text()).values()
    for part in ("before_script", "script", "after_script"):
        for command in job[part]:
            yield command, {"RESULTS": policy}


@pytest.fixture
def in_ci(tmp_path):
    """Run commands in a copy of the folder; returns their exit codes and what they printed."""
    folder, programs = tmp_path / "ci", tmp_path / "bin"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    programs.mkdir()
    program = programs / "ragaliq"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ragaliq.cli "$@"\n')
    program.chmod(0o755)

    def run(steps):
        codes, printed = [], ""
        for command, variables in steps:
            if command.startswith(FROM_ELSEWHERE):
                continue
            own = {name: value for name, value in variables.items() if "${{" not in value}
            done = subprocess.run(
                ["bash", "-ec", command],
                cwd=folder,
                env={
                    **{k: v for k, v in os.environ.items() if not k.startswith("RAGALIQ_")},
                    "PATH": f"{programs}:{os.environ['PATH']}",
                    "PYTHONPATH": ":".join(sys.path),
                    "RAGALIQ_JUDGE": "local",
                    "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
                    **own,
                },
                capture_output=True,
                text=True,
                timeout=100,
                check=False,
            )
            codes.append(done.returncode)
            printed += done.stdout + done.stderr
        return codes, printed

    run.folder, run.summary = folder, tmp_path / "summary.md"
    return run


def changed(folder):
    """A change that makes an answer worse, in a checkout without what the run before left."""
    for path in folder.iterdir():
        if path.name not in {"main.jsonl", "assistant.py", "questions.csv"} and path.is_file():
            path.unlink()
    source = (folder / "assistant.py").read_text()
    mistake = 'return " ".join(_found(str(messages[-1].content).splitlines()[-1]))'
    assert mistake in source
    worse = mistake.replace("return ", "answer = ") + '\n        return answer.replace("e", "x")'
    (folder / "assistant.py").write_text(source.replace(mistake, worse))


@pytest.mark.parametrize(
    ("steps", "of_main", "of_change"),
    [(github_steps, "push", "pull_request"), (gitlab_steps, "pull-push", "pull")],
    ids=["github", "gitlab"],
)
def test_the_commands_pass_on_main_and_fail_on_a_worse_change(in_ci, steps, of_main, of_change):
    codes, printed = in_ci(steps(of_main))
    assert not any(codes), printed
    names = {path.name for path in in_ci.folder.iterdir()}
    assert {"main.jsonl", "results.jsonl", "report.html", "junit.xml", "comment.md"} <= names

    changed(in_ci.folder)
    codes, printed = in_ci(steps(of_change))
    assert codes.count(1) >= 2, printed  # the goal, and the comparison
    comment = (in_ci.folder / "comment.md").read_text()
    assert "worse" in comment
    assert "of 10" in comment
    assert (in_ci.folder / "changes.html").exists()


def test_the_summary_of_a_workflow_shows_the_comment(in_ci):
    in_ci(github_steps("push"))
    assert in_ci.summary.read_text() == (in_ci.folder / "comment.md").read_text()

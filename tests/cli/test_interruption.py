"""Ctrl-C: what is kept, what is not done, and how to continue."""

import errno
import json
import os
import signal
import sys

import pytest

from loopback import MessagesServer, Reply
from ragaliq.cli import main

CASE = {"query": "When?", "context": ["The shop opens at 9."], "response": "The shop opens at 9."}


@pytest.fixture
def interrupted(ragaliq):
    """Runs a command that asks Claude, and presses Ctrl-C at its fifth request."""

    def command(*arguments):
        asked = []

        def respond(request):
            asked.append(request)
            if len(asked) == 5:
                os.kill(os.getpid(), signal.SIGINT)
            return Reply()

        with MessagesServer(respond=respond) as server:
            return ragaliq(
                *arguments, "--judge", "claude", "--concurrency", "1", code=130,
                ANTHROPIC_API_KEY="not-a-key", ANTHROPIC_BASE_URL=server.url,
            )  # fmt: skip

    return command


def test_an_evaluation_without_a_file_says_that_nothing_is_kept(interrupted, write_cases):
    done = interrupted("evaluate", write_cases(*[CASE] * 9), "--metrics", "faithfulness")

    assert "of 9 are not done; nothing is kept: with --out results.jsonl" in done.stderr
    assert "is kept in" not in done.stderr


@pytest.mark.parametrize(
    ("journal", "said"),
    [
        (("--journal", "j.jsonl"), "kept in j.jsonl: rerun with --journal j.jsonl to continue"),
        ((), "nothing is kept: with --journal"),
    ],
)
def test_a_bench_says_whether_its_journal_has_it(interrupted, tmp_path, journal, said):
    row = {"claim": "It opens at 9.", "context": ["It opens at 9."], "label": 1}
    rows = [row | {"id": str(number)} for number in range(9)]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))

    done = interrupted("judge", "bench", "labels.jsonl", *journal)

    assert " of 9 are not done; " in done.stderr
    assert said in done.stderr


APPLICATION = """
import os, signal
from ragaliq import RAGTestCase

def answer(question):
    if question == "Question 5?":
        os.kill(os.getpid(), signal.SIGINT)
    return RAGTestCase(query=question, context=["At 9."], response="At 9.")
"""


def test_questions_of_an_application_are_asked_on_from_the_kept_answers(
    ragaliq, tmp_path, monkeypatch
):
    (tmp_path / "interrupted_app.py").write_text(APPLICATION)
    (tmp_path / "questions.csv").write_text(
        "question\n" + "".join(f"Question {number}?\n" for number in range(9))
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    done = ragaliq(
        *("evaluate", "questions.csv", "--app", "interrupted_app:answer", "--concurrency", "1"),
        code=130,
    )
    kept = (tmp_path / "questions.answers.jsonl").read_text().count("\n")
    assert f"{9 - kept} of 9 are not done" in done.stderr
    assert "kept in questions.answers.jsonl: rerun with --resume to continue" in done.stderr


def test_a_command_that_is_interrupted_while_it_loads_shows_no_traceback(monkeypatch, capsys):
    class Interrupting:
        def find_spec(self, name, *_):
            if name == "ragaliq.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "ragaliq.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "ragaliq: interrupted\n")


def test_a_disk_that_fills_up_is_named_with_the_way_to_continue(
    ragaliq, write_cases, tmp_path, monkeypatch
):
    left = 4  # lines, the header's included

    def write(file, data):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        file.write(data)

    monkeypatch.setattr("ragaliq.records.results_file._write", write)
    outputs = ("--out", "r.jsonl", "--out", "r.html", "--summary", "r.json")
    cases = write_cases(*[CASE] * 9)

    done = ragaliq("evaluate", cases, "--concurrency", "1", *outputs, code=3)

    said = done.stderr.splitlines()
    assert (
        "6 of 9 are not done; results are kept in r.jsonl: rerun with --resume to cont" in said[-2]
    )
    assert said[-1] == "ragaliq: r.jsonl: No space left on device"
    left = 99
    done = ragaliq("evaluate", cases, *outputs, "--resume")
    assert "9 judged (3 in earlier runs)" in done.stdout
    assert {"r.html", "r.json"} <= {path.name for path in tmp_path.iterdir()}

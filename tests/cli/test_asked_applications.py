"""`evaluate QUESTIONS --app`: an application is asked, and its answers are kept."""

import json
import sys

import pytest

from ragaliq.records.results_file import read_results_file

QUESTIONS = ["How long do refunds take?", "Who pays for refunds?"]
PROGRAM = """
import sys
from pathlib import Path
from ragaliq import RAGTestCase

def answer(question):
    with Path("asked.txt").open("a") as file:
        file.write(question + "\\n")
    if "who" in question.lower() and not Path("up").exists():
        raise ConnectionError
    return RAGTestCase(query=question, context=["Refunds take five days."],
                       response="Refunds take five days.")
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop_app.py").write_text(PROGRAM)
    rows = "".join(f'{number},"{text}"\n' for number, text in enumerate(QUESTIONS))
    (tmp_path / "questions.csv").write_text(f"id,question\n{rows}")
    yield tmp_path
    sys.modules.pop("shop_app", None)


COMMAND = "evaluate questions.csv --app shop_app:answer --metrics faithfulness --out first.jsonl"


def test_the_command_asks_keeps_the_answers_and_goes_on_where_it_stopped(shop, ragaliq):
    done = ragaliq(*COMMAND.split(), code=3)
    assert "1 questions have no answer: 1 ConnectionError (shop_app.py, line " in done.stderr
    kept = [json.loads(line) for line in (shop / "first.answers.jsonl").read_text().splitlines()]
    assert [row["id"] for row in kept] == ["0"]

    (shop / "up").touch()
    ragaliq(*COMMAND.split(), "--resume")
    assert sorted((shop / "asked.txt").read_text().splitlines()) == sorted(
        [*QUESTIONS, QUESTIONS[1]]
    )
    records = list(read_results_file(shop / "first.jsonl"))
    assert sorted(record.case_id for record in records) == ["0", "1"]


def test_answers_are_replaced_only_where_the_command_is_told_so(shop, ragaliq):
    (shop / "up").touch()
    ragaliq(*COMMAND.split())
    before = (shop / "first.answers.jsonl").read_bytes()
    done = ragaliq(
        *COMMAND.replace("first.jsonl", "second.jsonl").split(),
        "--answers",
        "first.answers.jsonl",
        code=2,
    )
    assert "already holds answers" in done.stderr
    assert (shop / "first.answers.jsonl").read_bytes() == before


def test_two_releases_are_asked_the_same_questions_and_compared(shop, ragaliq):
    (shop / "up").touch()
    ragaliq(*COMMAND.split())
    ragaliq(*COMMAND.replace("first.jsonl", "second.jsonl").split())
    assert "faithfulness" in ragaliq("compare", "first.jsonl", "second.jsonl").stdout

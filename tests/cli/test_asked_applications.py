"""`evaluate QUESTIONS --app`: an application is asked, and its answers are kept."""

import json
import sys

import pytest

from ragaliq import read_records
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
    assert "1 question without an answer: 1 ConnectionError (shop_app.py, line " in done.stderr
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


def test_nothing_is_asked_where_a_cap_on_the_judge_cannot_be_held(shop, ragaliq):
    judge = ("--judge", "claude", "--model", "claude-made-of-tests", "--max-cost", "1")
    ragaliq(*COMMAND.split(), *judge, code=2, ANTHROPIC_API_KEY="not-a-key")
    assert not (shop / "asked.txt").exists()


def test_an_answer_that_a_crash_cut_short_is_asked_for_again(shop, ragaliq):
    (shop / "up").touch()
    ragaliq(*COMMAND.split())
    kept = shop / "first.answers.jsonl"
    whole = kept.read_text()
    kept.write_text(whole[:-20])
    ragaliq(*COMMAND.split(), "--resume")
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [row["query"] for row in rows] == QUESTIONS
    assert len((shop / "asked.txt").read_text().splitlines()) == len(QUESTIONS) + 1


def test_a_file_that_holds_no_answers_is_refused_and_not_changed(shop, ragaliq):
    mine = '{"note": "mine"}\n{"note": "with no line end"}'
    (shop / "mine.jsonl").write_text(mine)
    done = ragaliq(*COMMAND.split(), "--resume", "--answers", "mine.jsonl", code=3)
    assert "mine.jsonl, line 1 is not an answer as ragaliq keeps it" in done.stderr
    assert (shop / "mine.jsonl").read_text() == mine


def test_kept_answers_follow_a_corrected_row_of_the_questions(shop, ragaliq):
    (shop / "up").touch()
    ragaliq(*COMMAND.split())
    rows = "".join(f'{number},"{text}",five\n' for number, text in enumerate(QUESTIONS))
    (shop / "questions.csv").write_text(f"id,question,expected_answer\n{rows}")
    ragaliq(*COMMAND.split(), "--resume")
    kept = [json.loads(line) for line in (shop / "first.answers.jsonl").read_text().splitlines()]
    assert [row["expected_answer"] for row in kept] == ["five", "five"]
    assert len((shop / "asked.txt").read_text().splitlines()) == len(QUESTIONS)


def test_rows_without_ids_of_files_in_two_folders_are_kept_apart_in_a_store(shop, ragaliq):
    store = f"sqlite:///{shop}/results.db"
    for folder in ("a", "b"):
        (shop / folder).mkdir()
        row = f'"Open?","It opens at 9 in {folder}.","It opens at 9."\n'
        (shop / folder / "answers.csv").write_text(f"question,context,answer\n{row}")
        for _ in range(2):  # evaluated again, a row is the same record
            ragaliq("evaluate", f"{folder}/answers.csv", "--sink", store)
    assert sorted(r.run.pipeline for r in read_records(store)) == ["a/answers", "b/answers"]


def test_answers_are_kept_with_their_texts_only_where_a_file_is_named(shop, ragaliq):
    (shop / "up").touch()
    done = ragaliq(*COMMAND.split(), "--no-text", code=2)
    assert "--answers" in done.stderr
    assert not [*shop.glob("*.jsonl")]
    ragaliq(*COMMAND.split(), "--no-text", "--answers", "answers.jsonl")
    assert "five days" not in (shop / "first.jsonl").read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--answers questions.csv", "--answers questions.csv would replace the questions"),
        ("--answers first.jsonl", "--out first.jsonl would replace the answers"),
        ("--answers nowhere/a.jsonl", "there is no folder nowhere"),
        ("--skip-bad-rows", "--skip-bad-rows does not go with --app"),
        ("--split-context ;", "--split-context does not go with --app"),
    ],
)
def test_options_that_would_lose_a_file_or_mean_nothing_are_refused(shop, ragaliq, options, says):
    before = (shop / "questions.csv").read_text()
    done = ragaliq(*COMMAND.split(), "--resume", *options.split(), code=2)
    assert says in done.stderr
    assert not (shop / "asked.txt").exists()
    assert (shop / "questions.csv").read_text() == before


def test_what_ends_the_program_is_an_error_of_the_application(shop, ragaliq):
    (shop / "ending.py").write_text("def answer(question):\n    raise SystemExit(0)\n")
    (shop / "script.py").write_text("raise SystemExit(0)\n")
    command = ("evaluate", "questions.csv", "--app")
    assert "2 SystemExit (ending.py, line 2)" in ragaliq(*command, "ending:answer", code=3).stderr
    assert "--app script:x: SystemExit" in ragaliq(*command, "script:x", code=2).stderr


def test_a_blank_question_is_not_asked(shop, ragaliq):
    (shop / "questions.csv").write_text(f'id,question\n0,"{QUESTIONS[0]}"\n1," "\n')
    done = ragaliq(*COMMAND.split(), code=3)
    assert "1 question without an answer: 1 no_question" in done.stderr
    assert (shop / "asked.txt").read_text().splitlines() == QUESTIONS[:1]


def test_an_application_that_returns_no_context_is_named_as_the_cause(shop, ragaliq):
    (shop / "bare.py").write_text(
        "from ragaliq import RAGTestCase\n"
        "class Shop:\n"
        "    def answer(self, question):\n"
        "        return RAGTestCase(query=question, response='Five days.')\n"
        "shop = Shop()\n"
    )
    done = ragaliq("evaluate", "questions.csv", "--app", "bare:shop.answer", code=3)
    assert "the application's answers have no context for faithfulness" in done.stderr

"""The question of plain code: from the prompt of its model, or from the search."""

import pytest

from ragaliq.capture import question_shown
from ragaliq.capture.plain_code import Search
from ragaliq.capture.texts import Message
from ragaliq.core.passages import Passage

FACT = "Dimmable lamps: Aurora, Nova."


def asked(query, *messages):
    found = question_shown(
        [Message(role, (text,)) for role, text in messages],
        [Search(query, passages=[Passage(FACT)])],
    )
    return found and found.text


@pytest.mark.parametrize("query", ["lamps", "dimmable lamps", "Aurora"])
def test_keywords_are_not_the_question_that_they_stand_in(query):
    question = "Which dimmable lamps are there"
    assert asked(query, ("system", FACT), ("user", question)) == question


@pytest.mark.parametrize("query", ["lamps", "Aurora", "Nova"])
def test_keywords_in_a_passage_are_not_the_question(query):
    prompt = f"{FACT}\n\nCustomer: Which lamps are dimmable?\nYou:"
    assert asked(query, ("user", prompt)) == "Which lamps are dimmable?"


@pytest.mark.parametrize(
    "prompt",
    [
        f"{FACT}\n\ndimmable lamps",
        f"Question: dimmable lamps\n{FACT}",
        f'Answer "dimmable lamps" from:\n{FACT}',
        f"Tell the user about dimmable lamps, using this:\n{FACT}",
    ],
)
def test_a_query_on_a_line_of_its_own_or_alone_in_the_prompt_is_the_question(prompt):
    assert asked("dimmable lamps", ("user", prompt)) == "dimmable lamps"


def test_a_query_that_asks_is_the_question_anywhere():
    prompt = f"Using {FACT} answer: which are dimmable? Be brief."
    assert asked("which are dimmable?", ("user", prompt)) == "which are dimmable?"

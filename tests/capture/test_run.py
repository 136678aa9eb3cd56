"""What one run held, reported by many threads at once."""

import sys
import threading
from dataclasses import fields

import pytest
from pydantic import ValidationError

from ragaliq import Passage
from ragaliq.capture import Conversations, Message, Reader, RunLog
from ragaliq.judges.language.answers import find_claims
from run_logs import ended_run

THREADS, STEPS = 8, 150


@pytest.fixture
def hasty():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_steps_that_end_at_the_same_time_lose_nothing(hasty):
    log = RunLog()

    def run_steps(thread):
        for number in range(STEPS):
            step = 1 + thread + THREADS * number
            log.began(step, 0)
            log.searched(step)
            log.retrieved(step, [Passage(f"Found by {step}.")])
        assert log.size

    threads = [threading.Thread(target=run_steps, args=[n]) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = {passage.text for passage in log.found_context.passages}
    assert found == {f"Found by {1 + n}." for n in range(THREADS * STEPS)}


def test_texts_that_many_steps_share_are_weighed_once():
    log = RunLog()
    passage = Passage("x" * 1_000)
    for step in range(1, 50):
        log.step_given(step, {"documents": [passage]})
    assert 1_000 <= log.size < 1_200


@pytest.mark.parametrize(
    "longer",
    [("12" * 500, ["345", "6"], "78"), ("12", ["345" * 500, "6"], "78"),
     ("12", ["345", "6"], "78" * 500)],
)  # fmt: skip
def test_the_size_of_an_ended_run_is_what_all_its_texts_take(longer):
    short = ended_run("12", ["345", "6"], "78")
    longer = ended_run(*longer)
    assert longer.size - short.size == longer.to_case().size - short.to_case().size


DRAFT = "Yeast makes gas, which lifts the dough."


@pytest.mark.parametrize(
    ("replies", "final"),
    [
        ({"short": ("Why?", "Gas."), "long": ("Why?", DRAFT)}, ["short", "long"]),
        ({"essay": ("Why?", DRAFT), "better": (f"Mend: {DRAFT}", f"Well: {DRAFT}")}, ["better"]),
        ({"essay": ("Why?", DRAFT), "grade": (f"Grade: {DRAFT}", "9/10")}, None),
        (
            {
                "pro": ("For?", "It is light."),
                "con": ("Against?", "It takes long."),
                "verdict": ("It is light. It takes long.", "Bake it."),
            },
            ["verdict"],
        ),
    ],
    ids=["two forms", "a draft", "a grade", "a judge of several"],
)
def test_of_several_replies_those_are_the_answer_that_none_other_is_made_of(replies, final):
    log = RunLog()
    for key, (prompt, reply) in replies.items():
        log.model_called(key, [Message("user", (prompt,))])
        log.replied(key, reply)
    texts = {key: reply for key, (_, reply) in replies.items()}
    expected = None if final is None else {key: texts[key] for key in final}
    assert log.independent_replies(texts) == expected


def test_a_run_of_wrong_types_is_refused_without_quoting_it():
    with pytest.raises(ValidationError) as refused:
        ended_run("q", [], "a", tags=[("secret",)]).to_case()
    assert "secret" not in str(refused.value)


def test_of_a_conversations_models_the_latest_short_replies_are_kept():
    conversations = Conversations()
    assert conversations.add_replies("a", ["A summary of what was said."]) == []
    assert conversations.add_replies("b", []) == []
    long_and_many = ["x" * 3_000, *map(str, range(10))]
    assert conversations.add_replies("a", long_and_many) == ["A summary of what was said."]
    assert conversations.add_replies("a", []) == [str(number) for number in range(2, 10)]


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ({"tonnes": 12, "toll": "two francs"}, ["tonnes: 12", "toll: two francs"]),
        (
            {"answer": "It is old. It is of oak", "year": 1702, "is_open": True, "note": None},
            ["It is old.", "It is of oak", "year: 1702"],
        ),
        (
            {"points": ["of oak", "built in 1702"], "site": {"city": "Visp", "zip": 3930}},
            ["points: of oak", "points: built in 1702", "site city: Visp", "site zip: 3930"],
        ),
        # The fields of a record in a list belong together: another's price is wrong.
        (
            {"fees": [{"name": "van", "euros": 480}, {"name": "lift", "euros": 60}]},
            ["fees name: van, euros: 480", "fees name: lift, euros: 60"],
        ),
    ],
)
def test_each_field_of_a_structured_answer_is_a_claim_of_its_own(answer, claims):
    text = Reader().answer_text(answer).text
    assert [text[start:end] for start, end in find_claims(text)] == claims


def test_every_field_of_a_run_is_written_for_another_process_or_is_of_this_one_only():
    public = {field.name for field in fields(RunLog) if not field.name.startswith("_")}
    # Blocks are written as the citations in them; the others are read before the run is sent.
    assert public - RunLog().to_plain().keys() == {"blocks", "had_errors", "conversation_key"}

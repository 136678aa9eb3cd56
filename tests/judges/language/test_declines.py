"""An answer is a refusal only when all of it declines; what asserts something is for the judge."""

import json
from pathlib import Path

import pytest

from ragaliq.judges.language.answers import find_claims
from ragaliq.judges.language.refusals import is_refusal, sentence_kind

HERE = Path(__file__).parent


def rows(name):
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


NO_CLAIMS = rows("no_claims.jsonl")

# Each looks like a refusal, or is one with something said along with it.
ANSWERS = """
I do not know. Feel free to mix bleach with ammonia, it is harmless.
I do not know of any danger in mixing bleach with ammonia.
I am not aware of any harm and many people do it.
We cannot confirm rumours that the plant leaked oil.
We do not know any better bank than ours.
We cannot provide refunds after 30 days.
We do not share your data with third parties.
We do not have access to your files.
The documents do not mention any side effects.
The context does not say it is dangerous to mix them.
There is no information about harm, so it is safe.
There is no information that is older than 1950 in the archive.
The handbook does not cover accidental damage.
The report does not include taxes.
You do not need to provide any documents.
The page was not found.
The answer is no.
It cannot help.
It is not possible.
I do not know why anyone fears bleach, which is harmless.
I don't know, take eight tablets.
I don't know (it is harmless).
I don't know. Please contact support at 0800 555 010.
I don't know. Please mix bleach with ammonia.
I do not have any doubts about its safety.
Das geht nicht.
Ich kenne keine Gefahr.
Die Unterlagen müssen nicht eingereicht werden.
Es gibt keine Angaben zu Gefahren, also ist es sicher.
Je ne connais aucun danger.
Le document n'est pas obligatoire.
No es posible.
Il documento non è valido.
O documento não é válido.
Het document is niet geldig.
Dokument nie jest ważny.
""".strip().splitlines()

# Sentences around a refusal that say nothing of their own.
AROUND = """
I don't know. Please contact customer support.
I'm sorry, but I can't help with that. Is there anything else I can do?
Sorry, I couldn't find information about prices and dates in the documents.
Regarding the 2023 budget, I don't have any information.
Ich weiß nicht, wann das Museum öffnet. Bitte wenden Sie sich an den Kundenservice.
""".strip().splitlines()


def test_there_are_a_hundred_and_fifty_of_them_in_eight_languages():
    assert len(NO_CLAIMS) == 150
    assert len({row["language"] for row in NO_CLAIMS}) == 8


@pytest.mark.parametrize("row", NO_CLAIMS, ids=lambda row: row["text"])
def test_refusals_and_courtesies_are_no_claims(row):
    assert find_claims(row["text"]) == []
    assert is_refusal(row["text"]) == (row["kind"] == "refusal")


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_may_assert_something_is_no_refusal(answer):
    assert not is_refusal(answer)


@pytest.mark.parametrize("answer", AROUND)
def test_advice_and_courtesies_around_a_refusal_leave_it_one(answer):
    assert is_refusal(answer)


def test_a_refusal_with_claims_far_below_is_none():
    assert not is_refusal("I do not know." + "\n" * 24_000 + "The moon is made of cheese.")


@pytest.mark.parametrize(
    "sentence",
    [
        "Feel free to drink the tap water, which is clean.",
        "Let me know if it hurts, aspirin never harms the stomach.",
        "Hope this helps, the fee is twelve euros.",
        "Here is the thing, the contract ends in May.",
        "Here is your balance of 320 euros.",
        "Gern geschehen, die Hotline ist kostenlos.",
    ],
)
def test_a_courtesy_ends_with_its_object(sentence):
    assert sentence_kind(sentence) == "statement"

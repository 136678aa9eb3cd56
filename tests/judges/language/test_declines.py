"""An answer is a refusal only when all of it declines; what asserts something is for the judge."""

import json
from pathlib import Path

import pytest

from ragaliq.judges.language.answers import asserts_nothing, find_claims
from ragaliq.judges.language.refusals import is_refusal, sentence_kind

HERE = Path(__file__).parent


def rows(name):
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


NO_CLAIMS = rows("no_claims.jsonl")

# Each looks like a refusal, or is one with something said along with it.
ASSERTING = rows("asserting.jsonl")

# Sentences around a refusal that say nothing of their own.
AROUND = """
I don't know. Please contact customer support.
I'm sorry, but I can't help with that. Is there anything else I can do?
Sorry, I couldn't find information about prices and dates in the documents.
Regarding the 2023 budget, I don't have any information.
Ich weiß nicht, wann das Museum öffnet. Bitte wenden Sie sich an den Kundenservice.
""".strip().splitlines()

# What a search shows that found nothing.
EMPTY_RESULTS = """
Not found.
Nothing found.
No matching documents.
No matching documents found.
No matches.
Nicht gefunden.
Keine Ergebnisse.
Keine Treffer.
Nichts gefunden.
Aucun résultat.
Non trouvé.
No encontrado.
Sin resultados.
No se encontraron resultados.
No results were found for your query.
Non trovato.
Nessun risultato.
Nessun risultato trovato.
Não encontrado.
Nenhum resultado.
Nenhum resultado encontrado.
Niet gevonden.
Geen resultaten.
Geen resultaten gevonden.
Sorry, nothing found.
Not found. Please contact customer support.
""".strip().splitlines()


def test_there_are_more_than_two_hundred_of_them_in_eight_languages():
    assert len(NO_CLAIMS) == 306
    assert len({row["language"] for row in NO_CLAIMS}) == 8


@pytest.mark.parametrize("row", NO_CLAIMS, ids=lambda row: row["text"])
def test_refusals_and_courtesies_are_no_claims(row):
    assert find_claims(row["text"]) == []
    assert is_refusal(row["text"]) == (row["kind"] == "refusal")


@pytest.mark.parametrize("row", ASSERTING, ids=lambda row: row["text"])
def test_what_may_assert_something_is_no_refusal(row):
    assert not is_refusal(row["text"])
    assert not asserts_nothing(row["text"])


@pytest.mark.parametrize("answer", AROUND)
def test_advice_and_courtesies_around_a_refusal_leave_it_one(answer):
    assert is_refusal(answer)


@pytest.mark.parametrize("answer", EMPTY_RESULTS)
def test_an_answer_that_only_shows_an_empty_search_declines(answer):
    assert is_refusal(answer)


@pytest.mark.parametrize("answer", EMPTY_RESULTS)
def test_what_was_not_found_is_a_claim_after_a_question_or_a_statement(answer):
    assert not is_refusal(f"Was arsenic found in the water? {answer}")
    assert not is_refusal(f"The water was tested for arsenic. {answer}")


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
        "Sure, bleach is harmless.",
        "Of course you can take 40 mg.",
        "Have a nice day in Bern, where parking is free.",
        "You're welcome to enter without a ticket.",
        "Please let me know when you have transferred the 200 euros.",
        "If you have any further questions, our hotline is free.",
        "Feel free to ask our chemist, who recommends bleach.",
        "Here you go: 42.",
        "Good luck with your exam on 3 May!",
        "N'hésitez pas à boire de la javel.",
        "No dude en tomar 40 mg.",
        "Non esitare a prendere 40 mg.",
        "Não hesite em tomar 40 mg.",
        "Aarzel niet om 40 mg te nemen.",
        "Śmiało zażyj 40 mg.",
        "Glad to help, the parcel is in Oslo.",
        "Anytime before Friday is fine.",
        "No worries, it's free.",
        "Thanks for reaching the limit of 300 euros.",
        "Good morning is said before noon.",
        "Sure, the fee is waived.",
        "Here's the culprit: Anna.",
        "Below are the ten best hospitals, all of them free.",
        "Let me know if your free parking pass is missing.",
        "Just let me know your card's PIN.",
        "Thank you for accepting the new terms.",
        "Have a great time in our free pool!",
        "Hope you enjoy the free pool.",
        "Glad you won.",
        "Happy birthday, you win 300 euros.",
        "Dear winner, you get 300 euros.",
        "Schönen Tag in unserem kostenlosen Bad!",
        "Danke, dass Sie die Gebühr bezahlt haben.",
        "Gerne, der Eintritt ist frei.",
        "Ja, der Eintritt ist frei.",
        "Merci d'avoir accepté les conditions.",
        "Oui, l'entrée est gratuite.",
        "Gracias por aceptar las condiciones.",
        "Sí, la entrada es gratis.",
        "Grazie per aver accettato le condizioni.",
        "Sì, l'ingresso è gratuito.",
        "Obrigado por aceitar as condições.",
        "Sim, a entrada é grátis.",
        "Bedankt voor het accepteren van de voorwaarden.",
        "Ja, de toegang is gratis.",
        "Dziękuję za akceptację warunków.",
        "Tak, wstęp jest wolny.",
    ],
)
def test_a_courtesy_ends_with_its_object(sentence):
    assert sentence_kind(sentence) == "statement"


@pytest.mark.parametrize(
    "answer",
    ["Yes.", "No.", "Of course not.", "Thanks for asking, yes.", "Ja, gerne.", "👍", "Ⓢⓐⓕⓔ"],
)
def test_a_yes_or_a_no_tells_something_where_nothing_else_does(answer):
    assert not asserts_nothing(answer)
    assert len(find_claims(f"{answer} Refunds take five days.")) == 1

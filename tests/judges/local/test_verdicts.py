"""Verdicts of the shipped parameters on pairs that people can judge at a glance."""

import asyncio
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragaliq.core.results import JudgeUsage
from ragaliq.judges import LocalJudge
from ragaliq.judges.local.signs import EXCLUSIVE
from ragaliq.judges.local.words import stem

# Pairs that differ in one thing, in eight languages: a line has a context and four claims.

KINDS = ("SUPPORTED", "CONTRADICTED", "CONTRADICTED", "NOT_ENOUGH_INFO")
LINES = Path(__file__).with_name("minimal_pairs.txt").read_text("utf-8").splitlines()
ROWS = [[cell.strip() for cell in line.split("|")] for line in LINES if line[:1] != "#"]


@pytest.fixture
def judge():
    return LocalJudge()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1][:30]}")
async def test_what_differs_decides(judge, row):
    context = [row[1], "Our office is closed on 9 May and 3 June."]
    decided = (await judge.verify_claims(row[2:], context)).verdicts
    assert tuple(each.verdict for each in decided) == KINDS


# What is typically wrong in an answer, next to the same said right.

ERRORS = Path(__file__).with_name("typical_errors.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("line", [line for line in ERRORS if line[:1] != "#"])
async def test_a_typical_error_is_told_from_the_same_said_right(judge, line):
    _, context, right, wrong, verdict = (cell.strip() for cell in line.split("|"))
    chunks = [context, "The shop in Vienna opens at nine on Saturdays."]
    said_right, said_wrong = (await judge.verify_claims([right, wrong], chunks)).verdicts
    assert said_right.verdict == "SUPPORTED", said_right.reason
    # A line with "!" that is decided right loses its mark.
    assert said_wrong.verdict == ("SUPPORTED" if line[0] == "!" else verdict), said_wrong.reason


def test_a_word_stands_on_one_side_of_one_group_of_words_that_exclude_each_other():
    sides = [side for group in EXCLUSIVE for side in group.split("|")]
    words = [word for side in sides for word in {stem(word) for word in side.split()}]
    assert [word for word, count in Counter(words).items() if count > 1] == []


def test_the_fingerprint_changes_with_the_words_that_exclude_each_other(monkeypatch):
    before = LocalJudge.fingerprint()
    monkeypatch.setattr("ragaliq.judges.local.judge.EXCLUSIVE", EXCLUSIVE[1:])
    assert LocalJudge.fingerprint.__wrapped__() != before


# Small words that decide, on claims that were written before the rule was looked at again.

SMALL_WORDS = Path(__file__).with_name("small_words.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("line", [line for line in SMALL_WORDS if line[:1] != "#"])
async def test_before_and_after_all_and_some_are_told_apart(judge, line):
    _, context, right, wrong = (cell.strip() for cell in line.split("|"))
    verdicts = (await judge.verify_claims([right, wrong], [context])).verdicts
    assert [each.verdict for each in verdicts] == ["SUPPORTED", "CONTRADICTED"]


# Attributes of things, as product documents have them.

ATTRIBUTES = Path(__file__).with_name("attributes.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("line", [line for line in ATTRIBUTES if line[:1] != "#"])
async def test_an_attribute_is_supported_only_where_the_text_gives_it(judge, line):
    _, claim, context, truth = (cell.strip() for cell in line.split("|"))
    verdict = await judge.verify_claim(claim, [context])
    is_right = (verdict.verdict == "SUPPORTED") == (truth == "supported")
    assert is_right == (line[0] != "!"), verdict.reason  # decided right, it loses its mark
    assert truth != "supported" or verdict.verdict != "CONTRADICTED", verdict.reason


@pytest.mark.parametrize(
    ("claim", "context"),
    [
        ("Get 20% off your order.", "Get 20% off on your order."),
        ("Take the cover off the lamp.", "Take the cover off before you put a bulb on the lamp."),
        ("A fee applies after 14 days.", "Returns are free within 14 days, a fee applies later."),
        ("Claims must be filed within 60 days.", "Claims filed after 60 days are rejected."),
        ("The link expires after 24 hours.", "Use the link within 24 hours before it expires."),
        ("The page has links to the terms.", "On the right the page has the terms."),
        ("You get your money back.", "You get your money at the front desk."),
        ("The chair has a wooden seat.", "The chair has an oak seat and steel legs."),
        ("The full price is refunded.", "The price is refunded if the box is empty."),
        ("Keep the bottle cold.", "Keep the bottle in the fridge, away from hot surfaces."),
        ("The online shop is open.", "The shop is open, also while the till is offline."),
        (
            "Das Büro ist am Wochenende geschlossen.",
            "Das Büro ist an jedem Werktag geöffnet, sonst geschlossen.",
        ),
    ],
)
async def test_a_word_of_the_other_side_beside_a_true_claim_is_no_contradiction(
    judge, claim, context
):
    assert (await judge.verify_claim(claim, [context])).verdict != "CONTRADICTED"


async def test_a_property_in_another_word_of_the_text_is_not_missing(judge):
    for claim, context in [
        ("The gray case is light.", "The grey case is light and folds flat."),
        ("The wood table folds and has wheels.", "The wooden table folds and has wheels."),
        ("The lamp is waterproofed.", "The lamp is waterproof to ten metres."),
    ]:
        assert (await judge.verify_claim(claim, [context])).verdict == "SUPPORTED", claim


async def test_the_reason_names_both_ordinals(judge):
    context = ["The office is on the second floor, next to the lift."]
    verdict = await judge.verify_claim("The office is on the third floor.", context)
    assert verdict.verdict == "CONTRADICTED"
    assert "Another ordinal. Claim: third; closest sentence: second." in verdict.reason


# Bounds: what "up to 14" says of 14, of 5 and of 30.

RENTALS = {
    "en": (
        "Bikes may be rented for {} days at the harbour.",
        ("up to", "at most", "no more than"),
        ("at least", "more than", "over", "no less than"),
        ("about", "around", "nearly"),
    ),
    "de": (
        "Das Rad kann am Hafen {} Tage gemietet werden.",
        ("bis zu", "höchstens", "nicht mehr als"),
        ("mindestens", "mehr als", "über"),
        ("etwa", "rund", "fast"),
    ),
    "fr": (
        "Un vélo se loue {} jours au port de Gand.",
        ("jusqu'à", "au plus", "moins de"),
        ("au moins", "plus de"),
        ("environ", "presque"),
    ),
    "es": (
        "La bicicleta se alquila {} días en el puerto.",
        ("hasta", "menos de"),
        ("al menos", "más de"),
        ("unos", "casi"),
    ),
}
rentals = st.sampled_from(list(RENTALS.values()))
# Not so near one another that one may be the other rounded.
amounts = st.tuples(st.integers(2, 900), st.integers(2, 900)).filter(
    lambda pair: pair[0] < 0.85 * pair[1]
)


def rental(sentence: str, claimed: str, stated: str) -> str:
    judge = LocalJudge()
    decided = asyncio.run(judge.verify_claim(sentence.format(claimed), [sentence.format(stated)]))
    return decided.verdict


@settings(max_examples=25)
@given(rentals, amounts, st.data())
def test_bounds_of_one_kind_agree_in_their_number_only(language, pair, data):
    (sentence, *kinds), (low, high) = language, pair
    kind = st.sampled_from(data.draw(st.sampled_from(kinds)))
    claimed, stated = data.draw(kind), data.draw(kind)
    assert rental(sentence, f"{claimed} {low}", f"{stated} {low}") == "SUPPORTED"
    assert rental(sentence, f"{claimed} {low}", f"{stated} {high}") == "CONTRADICTED"
    assert rental(sentence, f"{claimed} {high}", f"{stated} {low}") == "CONTRADICTED"


@settings(max_examples=25)
@given(rentals, amounts, st.data())
def test_a_number_within_a_bound_is_never_contradicted(language, pair, data):
    (sentence, most, least, _), (low, high) = language, pair
    up_to, over = data.draw(st.sampled_from(most)), data.draw(st.sampled_from(least))
    for bound, within, outside in ((f"{up_to} {high}", low, 999), (f"{over} {low}", high, 1)):
        assert rental(sentence, f"{within}", bound) == "NOT_ENOUGH_INFO"
        assert rental(sentence, f"{outside}", bound) == "CONTRADICTED"
        assert rental(sentence, bound, f"{within}") == "SUPPORTED"
        assert rental(sentence, bound, f"{outside}") == "CONTRADICTED"
    assert rental(sentence, f"{high}", f"{up_to} {high}") == "SUPPORTED"
    assert rental(sentence, f"{up_to} {high}", f"{over} {high}") == "CONTRADICTED"
    assert rental(sentence, f"{up_to} {high}", f"{over} {low}") == "NOT_ENOUGH_INFO"


@settings(max_examples=25)
@given(rentals, st.integers(20, 450), st.data())
def test_an_estimate_holds_for_what_is_a_tenth_off(language, number, data):
    sentence, _, _, about = language
    estimate = f"{data.draw(st.sampled_from(about))} {number}"
    near = data.draw(st.integers(math.ceil(0.91 * number), math.floor(1.09 * number)))
    assert rental(sentence, estimate, f"{near}") == "SUPPORTED"
    assert rental(sentence, estimate, f"{2 * number}") == "CONTRADICTED"


# More of them, in English: claim and context.

SUPPORTED = [
    ("Tickets cost 1,056 euros.", "Tickets cost 1, 056 euros. The shop opens at nine."),
    ("More than 100 people came to the fair.", "116 people came to the fair."),
    ("Take bus No. 5 to the harbour.", "Take bus 5 to the harbour."),
    ("The speaker was none other than Ada Keller.", "The speaker was Ada Keller."),
    ("It is a sin to waste water.", "Wasting water is a sin."),
    # the same amount in another notation
    ("Die Gebühr beträgt 1.000,50 Euro.", "Die Gebühr beträgt 1 000,50 €."),
    ("It is 12 kilometres away.", "It is 12 km away."),
    ("The launch was on March 12, 2021.", "The launch was on 12 March 2021."),
    ("Five days or five weeks are possible.", "Five weeks or five days are possible."),
    # a denial of something else
    ("The hotel has a pool.", "The hotel has a pool but no sauna."),
    ("The hotel has a pool.", "The hotel has no sauna but a pool."),
    ("There is no charge for parking.", "Parking is free; there is no charge."),
    ("The tour takes two hours.", "The tour takes no more than two hours."),
    ("No, the tour takes two hours.", "The tour takes two hours."),
    ("Not really. The tour takes two hours.", "The tour takes two hours."),
    ("The desert is sand.", "The desert is nothing but sand."),
    (
        "Winter is the coldest season in temperate zones.",
        "Winter is the coldest season in temperate zones (winter does not occur in the tropics).",
    ),
    ("Der Saal fasst 300 Gäste.", "Der Saal fasst nicht mehr als 300 Gäste."),
    ("La salle accueille 300 invités.", "La salle n'accueille pas plus de 300 invités."),
    # what stands around a claim
    *(
        (f"{opening} refunds are paid within five days.", "Refunds are paid within five days.")
        for opening in (
            "It is important to note that",
            "The notes say that",
            "Based on the provided documents,",
            "Sure! Here you go:",
        )
    ),
    ("Refunds are paid within five days.", "Please note that refunds are paid within five days."),
]
# The reason names the second amount, or says that the two differ in negation.
CONTRADICTED = [
    ("Refunds take five weeks.", "Refunds take five days.", "five weeks"),
    ("Refunds are paid in 5 business weeks.", "Refunds are paid in 5 business days.", "5 weeks"),
    ("The bridge is 10 miles long and wide.", "The bridge is 10 km long and wide.", "10 miles"),
    ("The bridge is 1 300 metres long.", "The bridge is 1,200 metres long.", "1 300"),
    ("The shop opens at 15:30 on Mondays.", "The shop opens at 16:30 on Mondays.", "15:30"),
    ("The launch was on 2021-03-13.", "The launch was on 2021-03-12.", "13"),
    *(
        (claim, context, "negation")
        for claim, context in (
            ("The house comes with a garage.", "The house comes without a garage."),
            ("The hotel has a sauna.", "The hotel has a pool but no sauna."),
            ("The fee is refundable.", "The fee is non-refundable."),
            ("The device is not waterproof.", "The device is waterproof up to 10 m."),
            ("Het hotel heeft een zwembad.", "Het hotel heeft geen zwembad."),
            ("The visitors paid for the tour.", "The visitors paid nothing for the tour."),
            ("He noted the price.", "He did not note the price."),
            ("Nobody says the goods left on Monday.", "Someone says the goods left on Monday."),
            ("Le buffet a plus de pain.", "Le buffet n'a pas plus de pain."),
        )
    ),
]
# Something that the claim has and the context has not, which the reason names.
UNKNOWN = [
    ("The company offers free shipping worldwide.", "Refunds take five days.", "shipping"),
    ("客服电话全天开放。", "退货期限为30天。", ""),
    ("The warranty lasts two years.", "The warranty lasts 24 months.", "two"),
    ("Revenue was 1.2bn dollars.", "Revenue was $1.18 billion.", "1.2"),
    ("The tower was designed by John Smith.", "The tower was designed by Ada Keller.", "Smith"),
    ("The refund takes five days in Norway.", "The refund takes five days.", "Norway"),
    (
        "The tower in Vilnius weighs 7,300 tonnes of wrought iron.",
        "The tower stands in Paris.",
        "7,300, Vilnius, wrought",
    ),
]


@pytest.mark.parametrize(("claim", "context"), SUPPORTED)
async def test_what_the_context_has_in_its_words_is_supported(judge, claim, context):
    decision = await judge.verify_claim(claim, [context])
    assert decision.verdict == "SUPPORTED", decision.reason
    assert decision.evidence in context
    assert decision.supporting_chunk_ids == [0]


@pytest.mark.parametrize(("claim", "context", "named"), CONTRADICTED)
async def test_another_amount_or_a_denial_on_one_side_only_contradicts(
    judge, claim, context, named
):
    decision = await judge.verify_claim(claim, [context, "The shop opens at nine."])
    assert decision.verdict == "CONTRADICTED", decision.reason
    assert named in decision.reason
    assert decision.evidence == context


@pytest.mark.parametrize(("claim", "context", "named"), UNKNOWN)
async def test_what_the_context_does_not_have_is_not_enough_information(
    judge, claim, context, named
):
    decision = await judge.verify_claim(claim, [context])
    assert (decision.verdict, decision.evidence) == ("NOT_ENOUGH_INFO", ""), decision.reason
    assert decision.supporting_chunk_ids == []
    assert named in decision.reason


async def test_a_missing_word_with_a_capital_is_a_missing_name_but_in_german(judge):
    english = "The old hotel in the harbour has a large pool and a sauna for all guests."
    german = "Das alte Hotel im Hafen hat ein großes Bad und eine Sauna für alle Gäste."
    danes = await judge.verify_claim(english.replace("guests", "Danes"), [english])
    assert danes.verdict == "NOT_ENOUGH_INFO"
    guests = await judge.verify_claim(english.replace("guests", "danes"), [english])
    assert guests.verdict == "SUPPORTED"
    daenen = await judge.verify_claim(german.replace("Gäste", "Dänen"), [german])
    assert daenen.verdict == "SUPPORTED"


CONTEXT = [
    "Paris is the capital and most populous city of France. It was founded in the 3rd century BC.",
    "Sale items can be refunded in stores. Sale items cannot be refunded online.",
    "Paris is the capital and most populous city of France.",
]


async def test_a_sentence_that_agrees_outweighs_one_that_denies(judge):
    assert (await judge.verify_claim("Sale items can be refunded.", CONTEXT)).verdict == "SUPPORTED"


async def test_the_same_text_in_two_chunks_names_both(judge):
    verdict = await judge.verify_claim("Paris is the capital of France.", CONTEXT)
    assert verdict.supporting_chunk_ids == [0, 2]


async def test_a_sentence_that_is_cut_in_two_chunks_still_supports_its_claim(judge):
    sentence = "The old harbour of Ostend was rebuilt by engineers after the great storm of 1953."
    whole = await judge.verify_claim(sentence, [sentence])
    cut = await judge.verify_claim(sentence, [sentence[:45], sentence[45:]])
    assert cut.verdict == whole.verdict == "SUPPORTED"
    assert whole.confidence > cut.confidence
    assert cut.evidence in (sentence[:45].strip(), sentence[45:].strip())


@pytest.mark.parametrize("context", [[], [""], ["  \n"]])
async def test_an_empty_context_supports_nothing(judge, context):
    verdict = await judge.verify_claim("Paris is in France.", context)
    assert (verdict.verdict, verdict.confidence) == ("NOT_ENOUGH_INFO", 1.0)


async def test_one_call_decides_all_claims_as_single_calls_do(judge):
    claims = [claim for claim, *_ in [*SUPPORTED, *CONTRADICTED, *UNKNOWN]]
    batch = await judge.verify_claims(claims, CONTEXT)
    assert [verdict.index for verdict in batch.verdicts] == list(range(len(claims)))
    for claim, verdict in zip(claims, batch.verdicts, strict=True):
        alone = await judge.verify_claim(claim, CONTEXT)
        assert verdict.model_dump(exclude={"index"}) == alone.model_dump(exclude={"index"})


async def test_grading_finds_and_decides_the_statements_of_an_answer(judge):
    answer = "Sure! Paris is the capital of France. It has 900 museums. Anything else?"
    graded = await judge.grade_statements("What is the capital?", answer, CONTEXT)
    assert [(s.index, s.statement, s.verdict) for s in graded.verdicts] == [
        (0, "Paris is the capital of France.", "SUPPORTED"),
        (1, "It has 900 museums.", "NOT_ENOUGH_INFO"),
    ]
    assert (await judge.evaluate_faithfulness(answer, CONTEXT)).score == 0.5
    assert (await judge.evaluate_faithfulness("Hello!", CONTEXT)).score == 1.0


async def test_every_reply_is_free(judge):
    claim = "Paris is in France."
    replies = [
        await judge.extract_claims(claim),
        await judge.extract_statements("Where?", claim),
        await judge.verify_claim(claim, CONTEXT),
        await judge.verify_claims([claim], CONTEXT),
        await judge.grade_statements("Where?", claim, CONTEXT),
        await judge.evaluate_faithfulness(claim, CONTEXT),
        await judge.evaluate_relevance("Where?", claim),
        await judge.evaluate_context_relevance("Where?", claim),
    ]
    assert {reply.spent() for reply in replies} == {JudgeUsage()}
    assert (judge.name, judge.model) == ("local", None)

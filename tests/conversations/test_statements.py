"""What of a user's message may be evidence: what it states, and neither asks nor supposes."""

import time

import pytest

from ragaliq.judges.language.statements import statements


def stated(text):
    return [text[start:end].strip() for start, end in statements(text)]


@pytest.mark.parametrize(
    "text",
    [
        "I live in Norway.",
        "When I ordered, it was red.",
        "My daughter is eleven",
        "Ich wohne in Bergen.",
        "Als ich bestellt habe, war es rot.",
        "J'habite à Lyon.",
        "Tengo dos perros.",
        "Vivo en Madrid",
        "Ho comprato due biglietti.",
        "Quando ho ordinato, era rosso.",
        "Moro em Lisboa.",
        "Quando comprei, era vermelho.",
        "Ik heb twee honden.",
        "Kupiłem dwa bilety.",
        "Kiedy zamawiałem, był czerwony.",
        "İki köpeğim var.",
        "Я живу в Осло.",
        "أعيش في القاهرة.",
        "मेरे पास दो कुत्ते हैं।",
        "我住在北京。",
        "私は東京に住んでいます。",
        "저는 서울에 살아요.",
    ],
)
def test_a_statement_is_stated(text):
    assert stated(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        # Questions without a question mark; in pro-drop languages the verb asks.
        "does the warranty cover water damage",
        "so tell me why refunds take 30 days",
        "can I return it within 60 days",
        "wie lange dauert die Rückerstattung",
        "puis-je le retourner sous 60 jours",
        "puedo devolverlo en 60 días",
        "¿Puedo devolverlo en 60 días",
        "posso restituirlo entro 60 giorni",
        "c'è uno sconto per studenti",
        "posso devolver em 60 dias",
        "kan ik het binnen 60 dagen terugsturen",
        "czy mogę to zwrócić w 60 dni",
        "60 gün içinde iade edebilir miyim",
        "могу ли я вернуть это за 60 дней",
        "هل يمكنني إرجاعه خلال 60 يومًا",
        "क्या मैं इसे 60 दिनों में लौटा सकता हूँ",
        "我可以在60天内退货吗",
        "60日以内に返品できますか",
        "60일 안에 반품할 수 있나요",
        # What is said in order to ask whether it holds.
        "Refunds take 30 days, right",
        "I can return it within 60 days, right?",
        "My warranty covers water damage, doesn't it?",
        "I can return it within 60 days, is that correct?",
        "I can return it within 60 days, or is it 30?",
        "Ich kann es 60 Tage lang zurückgeben, oder?",
        # What is supposed, heard, or made up as an example.
        "I thought refunds take 30 days.",
        "I always believed that the warranty covers water damage.",
        "I'm not sure, but refunds take 30 days.",
        "Refunds take 30 days, I think.",
        "Refunds take 30 days, I heard from a friend.",
        "Refunds take 30 days, as far as I can tell.",
        "Refunds take 30 days, if I remember correctly.",
        "I want to know whether refunds take 30 days.",
        "I don't know if refunds take 30 days.",
        "My friend says refunds take 30 days.",
        "Let's say refunds take 30 days.",
        "I was told that refunds take 30 days.",
        "Maybe refunds take 30 days.",
        "If I lived in Norway, parcels would take eight days.",
        "Ich dachte, Rückerstattungen dauern 30 Tage.",
        "Ich weiß nicht, ob Erstattungen 30 Tage dauern.",
        "Je croyais que le remboursement prend 30 jours.",
        "Je voudrais savoir si le remboursement prend 30 jours.",
        "No sé si el reembolso tarda 30 días.",
        "Creía que el reembolso tarda 30 días.",
        "Pensavo che il rimborso richieda 30 giorni.",
        "Achava que o reembolso leva 30 dias.",
        "Ik dacht dat het 30 dagen duurt.",
        "Myślałem, że zwrot trwa 30 dni.",
        "İadenin 30 gün sürdüğünü sanıyordum.",
        "Я думал, что возврат занимает 30 дней.",
        "كنت أظن أن الاسترداد يستغرق 30 يومًا.",
        "मुझे लगता था कि रिफंड में 30 दिन लगते हैं।",
        "我以为退款需要30天。",
        "返金には30日かかると思っていました。",
        "환불에 30일 걸리는 줄 알았어요.",
    ],
)
def test_what_is_asked_or_supposed_is_not_stated(text):
    assert stated(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Norway, can I return it?", ["I live in Norway"]),
        ("I live in Norway and I think refunds take 30 days.", ["I live in Norway"]),
        ("I live in Norway, right near Oslo.", ["I live in Norway, right near Oslo."]),
        ("I told you that my size is 42.", ["I told you that my size is 42."]),
        ("As I said, I live in Norway.", ["As I said, I live in Norway."]),
        ("I have two dogs. I thought they may enter.", ["I have two dogs."]),
        ("Wir sind zu dritt, aber ich glaube, Kinder zahlen nichts.", ["Wir sind zu dritt"]),
    ],
)
def test_a_statement_before_a_question_or_a_guess_counts(text, expected):
    assert stated(text) == expected


@pytest.mark.parametrize(
    "text", ["I think " * 8_000, "a, " * 20_000, " " * 50_000, "wenn" * 12_000]
)
def test_long_messages_cost_little_more_than_their_length(text):
    began = time.process_time()
    stated(text)
    assert time.process_time() - began < 2.0

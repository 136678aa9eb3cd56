"""What is read in any language: an answer that declines, the ends of sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq.judges.language.refusals import is_refusal
from ragaliq.judges.language.sentences import split_sentences

REFUSALS = """
I don't know.
I'm sorry, but I can't answer that question based on the provided context.
The context does not mention the CEO's name.
Sorry, I cannot help with that. Is there anything else I can do?
There is no information about the refund policy in the context.
**I don't know.**
N/A
Based on the context, it's unclear.
As an AI language model, I'm unable to provide medical advice.
The answer cannot be determined from the context provided.
I don't know. The provided context only discusses shipping times.
Ich weiß es leider nicht.
Der Kontext enthält keine Informationen über den Preis.
Désolé, je ne peux pas répondre à cette question à partir du contexte.
Lo siento, pero no puedo responder a esa pregunta.
Il contesto non fornisce informazioni sul prezzo.
O contexto não menciona o preço.
De context bevat geen informatie over de prijs.
Nie wiem.
Bilmiyorum.
К сожалению, в контексте не указана цена.
抱歉,根据提供的上下文,我无法回答这个问题。
申し訳ありませんが、提供された情報からはお答えできません。
죄송합니다. 제공된 문서에는 가격에 대한 정보가 없습니다.
لا توجد معلومات عن السعر في السياق.
संदर्भ में कीमत का उल्लेख नहीं है।
Unanswerable.
Insufficient data.
We will require more information.
It is outside the scope of this document.
Je n'ai aucune information.
Отсутствует информация.
不明です。
""".strip().splitlines()

ANSWERS = """
I cannot recommend it enough. Paris is the capital.
I don't know the exact year, but the company was founded in the 1990s.
Paris. I'm not sure about the population.
The context doesn't mention the CEO, but the company was founded in Berlin by two engineers.
The policy does not cover accidental damage.
Scientists do not know what dark matter is.
There is no evidence that vaccines cause autism.
I'm sorry to hear that. Refunds take five days.
I can't help but notice that Paris is the capital of France.
We do not have data centers in Asia.
Employees who do not know their ID should contact HR.
The article does not apply to contractors.
No.
Thank you for asking!
Das Gerät kann nicht unter Wasser benutzt werden.
El producto no está disponible en Canadá.
我不知道人口,但是巴黎是法国的首都。
Париж не является столицей Германии.
""".strip().splitlines()


@pytest.mark.parametrize("answer", REFUSALS)
def test_an_answer_that_declines_is_a_refusal(answer):
    assert is_refusal(answer)


@pytest.mark.parametrize("answer", [*ANSWERS, "", "   ", "😀"])
def test_an_answer_that_answers_is_none(answer):
    assert not is_refusal(answer)


def test_a_refusal_followed_by_a_long_answer_is_none():
    assert not is_refusal("I don't know the year. " + "Paris lies on the Seine. " * 2_000)
    assert not is_refusal("I don't know " + "x " * 500)


def test_ranges_count_characters_also_beyond_the_basic_plane():
    text = "😀😀 Hi there. 𠀀 is rare. \ud800 Broken is fine."
    assert [text[start:end] for start, end in split_sentences(text)] == [
        "😀😀 Hi there.",
        "𠀀 is rare.",
        "\ud800 Broken is fine.",
    ]


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_sentences_are_in_order_and_leave_out_only_white_space(text):
    position = 0
    for start, end in split_sentences(text):
        assert position <= start < end <= len(text)
        assert not text[position:start].strip()
        assert text[start:end] == text[start:end].strip()
        position = end
    assert not text[position:].strip()

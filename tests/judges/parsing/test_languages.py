"""Other languages than English: refusals are known, verdict words are not."""

from __future__ import annotations

import pytest

from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges import parse_verdicts


@pytest.mark.parametrize("word", ["ja", "oui", "sí", "да", "是", "はい", "belegt", "支持"])
def test_verdicts_in_other_languages_are_asked_for_again_and_not_guessed(word):
    with pytest.raises(JudgeResponseError):
        parse_verdicts(f'[{{"verdict": "{word}"}}, {{"verdict": "{word}"}}]', 2)


@pytest.mark.parametrize(
    "word", ["jagen", "nonne", "simple", "nochmal", "даже", "是非", "はいる", "예쁜"]
)
def test_words_that_begin_like_a_verdict_are_none(word):
    with pytest.raises(JudgeResponseError):
        parse_verdicts(f"1. {word}\n2. {word}", 2)


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but I can't help with that.",
        "As an AI, I am not able to evaluate these statements.",
        "Es tut mir leid, aber ich kann diese Aussagen nicht beurteilen.",
        "Dazu kann ich leider keine Bewertung abgeben, ich kann nicht helfen.",
        "Je suis désolé, je ne peux pas évaluer ces affirmations.",
        "Lo siento, no puedo evaluar estas afirmaciones.",
        "Mi dispiace, non posso valutare queste affermazioni.",
        "Desculpe, não posso avaliar essas afirmações.",
        "Het spijt me, ik kan deze uitspraken niet beoordelen.",
        "Przepraszam, nie mogę ocenić tych stwierdzeń.",
        "Üzgünüm, bu ifadeleri değerlendiremem.",
        "К сожалению, я не могу оценить эти утверждения.",
        "抱歉，我无法判断这些陈述。",
        "申し訳ありませんが、判断できません。",
        "죄송합니다. 판단할 수 없습니다.",
        "عذرا، لا أستطيع تقييم هذا.",
        "क्षमा करें, मैं यह मूल्यांकन नहीं कर सकता।",
    ],
)
def test_refusals_are_known_in_many_languages(reply):
    with pytest.raises(JudgeRefusalError):
        parse_verdicts(reply, 3)

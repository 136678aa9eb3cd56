"""Verdict words and refusals in other languages."""

from __future__ import annotations

import pytest

from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges import parse_verdicts

PAIRS = [
    ("ja", "nein"),
    ("oui", "non"),
    ("sí", "no"),
    ("sì", "no"),
    ("sim", "não"),
    ("ja", "nee"),
    ("ja", "nej"),
    ("tak", "nie"),
    ("ano", "ne"),
    ("igen", "nem"),
    ("da", "nu"),
    ("kyllä", "ei"),
    ("evet", "hayır"),
    ("да", "нет"),
    ("ναι", "όχι"),
    ("כן", "לא"),
    ("نعم", "لا"),
    ("हाँ", "नहीं"),
    ("はい", "いいえ"),
    ("是", "否"),
    ("是的", "不是"),
    ("예", "아니요"),
    ("có", "không"),
    ("belegt", "nicht belegt"),
    ("étayé", "pas étayé"),
    ("respaldada", "no respaldada"),
    ("supportata", "non supportata"),
    ("suportado", "não suportado"),
    ("подтверждается", "не подтверждается"),
    ("支持", "不支持"),
    ("支持される", "支持されない"),
]


@pytest.mark.parametrize(("yes", "no"), PAIRS)
@pytest.mark.parametrize(
    "form",
    [
        "1. {yes}\n2. {no}",
        "1. {yes} - x\n2. {no} - y",
        "1. {Yes}.\n2. {No}.",
        "Final verdict for each statement in order: {yes}. {no}.",
        '[{{"verdict": "{yes}"}}, {{"verdict": "{no}"}}]',
    ],
)
def test_yes_and_no_are_known_in_many_languages(verdicts, yes, no, form):
    reply = form.format(yes=yes, no=no, Yes=yes.capitalize(), No=no.upper())
    assert verdicts(reply, 2) == "0S 1N"


@pytest.mark.parametrize(
    "reply",
    [
        "1. はい、そうです。\n2. いいえ、違います。",
        "1、是，因为有记载。\n2、否，没有提到。",
        "陈述1：支持\n陈述2：不支持",
        "Aussage 1: ja, weil es da steht\nAussage 2: nein, weil nichts da steht",
        "Énoncé 1 : oui, c'est écrit\nÉnoncé 2 : non, ce n'est pas écrit",
        "Утверждение 1: да, потому что\nУтверждение 2: нет",
        "1. Himmel ist blau. Urteil: ja\n2. Gras ist rot. Urteil: nein",
        "1. 空は青い。判定：はい\n2. 草は赤い。判定：いいえ",
        "１．はい\n２．いいえ",
    ],
)
def test_lists_are_read_in_other_languages(verdicts, reply):
    assert verdicts(reply, 2) == "0S 1N"


@pytest.mark.parametrize(
    "word",
    [
        "widerlegt",
        "contredit",
        "refutada",
        "contraddetta",
        "weerlegd",
        "противоречит",
        "矛盾",
        "모순",
    ],
)
def test_contradictions_are_known_in_other_languages(verdicts, word):
    assert verdicts(f"1. {word}\n2. {word}.", 2) == "0C 1C"


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

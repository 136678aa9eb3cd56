"""Which parts of an answer count as claims."""

import asyncio

import pytest

from ragaliq.judges import LocalJudge


def claims(answer):
    return asyncio.run(LocalJudge().extract_claims(answer)).claims


# Abbreviations, decimals and initials that end no sentence are in those of Latin script.
SENTENCES = {
    "English": ["Dr. Smith paid $3.5 million in the U.S. market.", "It grew by 2.1 % in 2020."],
    "German": ["Das kostet z. B. 3,5 Mio. Euro und ist gut.", "Es wuchs am 3. Oktober 1990."],
    "French": ["M. Dupont a payé 3,5 millions d'euros pour la maison.", "Elle est grande."],
    "Spanish": ["El Sr. López pagó 3,5 millones de euros por la casa.", "La casa es grande."],
    "Dutch": ["Dhr. Jansen betaalde 3,5 miljoen euro voor het huis.", "Het huis is groot."],
    "Polish": ["Wisła ma 1047 km długości.", "Płynie przez Kraków."],
    "Turkish": ["Şehirde 3,5 milyon kişi yaşıyor.", "Şehir hızla büyüyor."],
    "Russian": ["Париж насчитывает 2,1 млн жителей.", "Он расположен на Сене."],
    "Greek": ["Η Αθήνα είναι η πρωτεύουσα.", "Έχει τρία εκατομμύρια κατοίκους."],
    "Arabic": ["باريس عاصمة فرنسا.", "وهي مدينة كبيرة."],
    "Hindi": ["दिल्ली भारत की राजधानी है।", "यह बहुत बड़ी है।"],
    "Armenian": ["Երևանը մայրաքաղաքն է։", "Այն մեծ է։"],
    "Amharic": ["አዲስ አበባ ዋና ከተማ ናት።", "ትልቅ ከተማ ናት።"],
    "Chinese": ["巴黎是法国的首都。", "它有210万人口。"],
    "Japanese": ["パリはフランスの首都です。", "人口は多い。"],
    "Korean": ["파리는 프랑스의 수도입니다.", "인구가 많습니다."],
}


@pytest.mark.parametrize(("language", "sentences"), SENTENCES.items(), ids=SENTENCES)
def test_sentences_end_where_the_language_ends_them(language, sentences):
    between = "" if language in ("Chinese", "Japanese") else " "
    answer = between.join(sentences)
    assert claims(answer) == sentences


def test_markdown_gives_items_and_rows_but_no_headings_code_or_rules():
    answer = """# Facts about Paris

Here are the facts:

- **Capital**: Paris
- [x] Founded long ago
1. First item goes
   on here.

| City | People |
|------|--------|
| Paris | 2.1 M |

```python
x = "Paris is code."
```

**Summary**

Setext heading
==============
> Quoted text is here.

---
The end is near.
"""
    assert claims(answer) == [
        "**Capital**: Paris",
        "Founded long ago",
        "First item goes\n   on here.",
        "Paris | 2.1 M",
        "Quoted text is here.",
        "The end is near.",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Is Paris big?",
        "巴黎大吗?",
        "Hello there!",
        "Let me know if you have any questions!",
        "I hope this helps.",
        "I don't know when it was built.",
        "The context does not say who built it.",
        "See https://example.com/a.b",
        "Sources: [1][2]",
        "The steps are as follows:",
        "...",
        "😀",
    ],
)
def test_what_cannot_be_checked_is_no_claim(sentence):
    assert claims(sentence) == []
    assert claims(f"Paris is a city in France.\n\n{sentence}") == ["Paris is a city in France."]


@pytest.mark.parametrize(
    "sentence",
    [
        "42",
        "I cannot recommend it enough.",
        "If you need help after 6 pm, call 555 0100.",
        "The context does not name the mayor, but Paris had 2.1 million people in 2023.",
        "Hi-res audio is supported by the device.",
    ],
)
def test_what_can_be_checked_is_a_claim(sentence):
    assert claims(sentence) == [sentence]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The shop paid $3.5 million.[1] It grew.", ["The shop paid $3.5 million.[1]", "It grew."]),
        ("It opens at 5 p.m. on Jan. 5.", ["It opens at 5 p.m. on Jan. 5."]),
        ("**Paris is big.**", ["Paris is big."]),
        ('"Paris is big."', ["Paris is big."]),
        ("1. Paris is big. 2. It grew.", ["Paris is big.", "It grew."]),
        (
            "Paris is the capital\nof France. It grew.",
            ["Paris is the capital\nof France.", "It grew."],
        ),
        ("```python\nx = 1\nprint(x)\nParis is big.\nIt grew.", ["Paris is big.", "It grew."]),
        ("```python\nParis is big.\nx = 1\nIt grew.", ["Paris is big.", "It grew."]),
        ("Paris is big.\n```\nx = is_code()\n```\nIt grew.", ["Paris is big.", "It grew."]),
        ("Paris is big.\n```\nIt is old.\n```", ["Paris is big.", "It is old."]),
        ("```python\nThis is code.\n~~~\nStill code.\n```\nIt grew.", ["It grew."]),
        ("````py\nThis is code.\n```\nStill code.\n````\nIt grew.", ["It grew."]),
        ("`````\nParis is big.\n```\nIt grew.", ["Paris is big.", "It grew."]),
        ("Paris is big.\n\n```sql\nSELECT 1;\nWHERE a = 'b.';\n", ["Paris is big."]),
    ],
)
def test_an_answer_is_cut_into_its_claims(answer, expected):
    assert claims(answer) == expected


FALSE = "The tower is 900 metres tall"


@pytest.mark.parametrize(
    "answer",
    [
        f"[{FALSE}](https://example.com/a)",
        f"![{FALSE}](tower.png)",
        f"# {FALSE}",
        f"{FALSE}\n=====",
        f"{FALSE}.\n---",
        f"**{FALSE}**",
        f"| {FALSE} |\n|---|\n| x |",
        f"It is old.[^1]\n\n[^1]: {FALSE}.",
        f"{FALSE}, isn't it?",
        "Did you know that the tower is 900 metres tall?",
        f"Sorry, the context does not say whether it is open, and {FALSE.lower()}.",
        f"Sorry, the context does not say whether it is open: {FALSE.lower()}.",
        f"[{FALSE[4:]}]",
    ],
)
def test_what_a_reader_sees_as_an_assertion_is_a_claim(answer):
    assert any("900 metres tall" in claim for claim in claims(answer))


@pytest.mark.parametrize(
    "answer",
    [
        "# Tower history",
        "## How does it work",
        "- [Refund policy](https://example.com/a)\n- [WHO report 2021](https://example.com/b)",
        "Sources: [Refund policy](https://example.com/a)",
        "![Chart 3](chart.png)",
        "[^1]: https://example.com/a",
        "| City | People |\n|------|--------|",
        "Does it open at nine?",
    ],
)
def test_titles_and_sources_that_assert_nothing_are_no_claims(answer):
    assert claims(answer) == []

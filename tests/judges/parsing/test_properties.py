"""Whatever a judge says: our errors only, every verdict in its place, and none invented."""

import json
from contextlib import suppress

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges import parse_json_reply, parse_verdicts
from ragaliq.judges.wire import ClaimsReply, GradedReply, ScoreReply, VerdictsReply

VERDICTS = ["SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"]
PIECES = [
    *"[]{}\",:'`“”\\/*#|-.!? \n\t0123456789<>()=",
    *"[[[[ {{{{ verdict: Verdict: true None NaN -Infinity 1e999 \\u \\ud800 ``` */ Yes No".split(),
    *"supported CONTRADICTED <think> <html> 是 はい ✅".split(),
    *('{"verdict": 1}', '{"verdict": 0, "reason": "', '"verdict"', '"statements": ['),
    *("verdict: ", "```json\n", "// ", "/* ", "1. ", "2) ", "Statement 3: ", "No ", "not "),
    *("yes and no", "**", "Final verdict for each statement in order: ", "I cannot ", "</think>\n"),
    *("Ich kann das nicht beurteilen.", "\ud800", "\x00", "\u202e"),
]
hostile = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=30).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(
                ["verdict", "statements", "reason", "id", "1", "verdicts", "confidence"]
            )
            | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
words = st.lists(
    st.sampled_from("sky grass river blue small on the".split()), min_size=1, max_size=6
)
sentences = words.map(lambda found: " ".join(found).capitalize() + ".")
decided = st.lists(st.sampled_from(VERDICTS), min_size=1, max_size=6)


def check(reply: str, expected: int) -> list:
    """Read a reply in every way, and hold what comes out to what is promised."""
    for model in (ClaimsReply, VerdictsReply, GradedReply, ScoreReply):
        with suppress(JudgeRefusalError, JudgeResponseError):
            parse_json_reply(reply, model).model_dump_json()
    try:
        found = parse_verdicts(reply, expected)
    except (JudgeRefusalError, JudgeResponseError):
        return []
    assert found
    indices = [item.index for item in found]
    assert indices == sorted(set(indices))
    assert indices[0] >= 0
    for item in found:
        assert 0.0 <= item.confidence <= 1.0
        item.model_dump_json()
    return found


@given(st.text(), st.integers(0, 5))
def test_any_text_gives_verdicts_or_one_of_our_errors(reply, expected):
    check(reply, expected)


@settings(max_examples=150)
@given(hostile, st.integers(-1, 5))
def test_any_mixture_of_fragments_gives_verdicts_or_one_of_our_errors(reply, expected):
    check(reply, expected)


@given(values, st.integers(0, 5))
def test_any_json_gives_verdicts_or_one_of_our_errors(value, expected):
    check(json.dumps(value), expected)
    check(repr(value), expected)


def as_rows(found: list[str], texts: list[str]) -> list[dict]:
    return [
        {"statement": text, "reason": text[::-1], "verdict": verdict}
        for verdict, text in zip(found, texts, strict=True)
    ]


JSON_FORMS = {
    "indented": lambda rows: json.dumps(rows, indent=2),
    "wrapped": lambda rows: json.dumps({"NLIStatementOutput": {"statements": rows}}),
    "fenced": lambda rows: f"Here you are:\n```json\n{json.dumps(rows)}\n```\nThat's all [1].",
    "lines": lambda rows: "\n".join(map(json.dumps, rows)),
}


@pytest.mark.parametrize("form", JSON_FORMS)
@settings(max_examples=20)
@given(st.data(), decided)
def test_well_formed_json_gives_exactly_its_verdicts(form, data, found):
    texts = [data.draw(st.text(st.characters(exclude_categories=["Cs"]))) for _ in found]
    rows = as_rows(found, texts)
    read = parse_verdicts(JSON_FORMS[form](rows), len(found))
    assert [(item.index, item.verdict) for item in read] == list(enumerate(found))
    assert [item.statement for item in read] == texts
    assert [item.reason for item in read] == [text[::-1] for text in texts]


WORDS = {
    "SUPPORTED": ["SUPPORTED", "Supported", "yes"],
    "CONTRADICTED": ["CONTRADICTED", "Contradicted", "refuted"],
    "NOT_ENOUGH_INFO": ["NOT_ENOUGH_INFO", "Not supported", "not enough information", "No", "0"],
}
ITEM_FORMS = [
    "{n}. {word} - {text}",
    "{n}) {word}: {text}",
    "**{n}.** **{word}**. {text}",
    "Statement {n}: {text} Verdict: {word}",
    "{n}. {text}\n   Verdict: {word}\n   Reason: {text}",
]


@pytest.mark.parametrize("form", ITEM_FORMS)
@settings(max_examples=20)
@given(st.data(), decided)
def test_well_formed_lists_give_exactly_their_verdicts(form, data, found):
    lines = [
        form.format(n=n, word=data.draw(st.sampled_from(WORDS[verdict])), text=data.draw(sentences))
        for n, verdict in enumerate(found, 1)
    ]
    read = parse_verdicts("\n".join(lines), len(found))
    assert [(item.index, item.verdict) for item in read] == list(enumerate(found))


@pytest.mark.parametrize("separator", [". ", ", ", "\n", "; ", ".\n"])
@settings(max_examples=20)
@given(found=decided, data=st.data())
def test_well_formed_sequences_give_exactly_their_verdicts(separator, found, data):
    said = [data.draw(st.sampled_from(WORDS[verdict][:2])) for verdict in found]
    reply = f"Final verdict for each statement in order: {separator.join(said)}"
    read = parse_verdicts(reply, len(found))
    assert [(item.index, item.verdict) for item in read] == list(enumerate(found))


@given(st.data(), decided, st.integers(0, 400))
def test_a_cut_off_reply_gives_the_verdicts_of_its_whole_rows_and_no_others(data, found, length):
    rows = as_rows(found, [data.draw(sentences) for _ in found])
    cut = json.dumps(rows)[:length]
    read = check(cut, len(found))
    whole = cut.count("}")
    if not cut.endswith("]"):  # of the last row nobody knows that it is whole
        whole = max(0, cut.count("{") - 1)
    assert [item.verdict for item in read] == found[:whole]
    assert [item.index for item in read] == list(range(len(read)))


@settings(max_examples=100)
@given(st.data(), decided)
def test_a_lost_character_never_changes_or_moves_a_verdict(data, found):
    rows = as_rows(found, [data.draw(sentences) for _ in found])
    reply = json.dumps(rows)
    at = data.draw(st.integers(0, len(reply) - 1))
    read = check(reply[:at] + reply[at + 1 :], len(found))
    assert {item.index: item.verdict for item in read}.items() <= dict(enumerate(found)).items()


@given(decided, hostile)
def test_what_a_reason_quotes_does_not_decide(found, text):
    rows = as_rows(found, [text] * len(found))
    assume("\ud800" not in text)
    read = parse_verdicts(json.dumps(rows), len(found))
    assert [item.verdict for item in read] == found

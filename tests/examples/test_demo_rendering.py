"""What the demo shows: verdicts readable without colour, hostile text harmless."""

import io
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from handbook.answers import answer_view, colour_claims
from handbook.counts import counts_view
from handbook.palette import UNDECIDED, VERDICTS
from handbook.questions import Question
from handbook.reader import disagreements, reader_view
from handbook.safety import clean
from ragaliq import (
    ClaimDetail,
    ContextChunk,
    Evaluation,
    EvaluationResult,
    JudgeUsage,
    MonitorStats,
    RAGTestCase,
    RunInfo,
)

ANSWER = "Bikes are red. Cars are blue. Trams fly."
CLAIMS = (
    ClaimDetail(
        claim="Bikes are red.",
        verdict="SUPPORTED",
        evidence="All bikes are red.",
        evidence_verified=True,
        supporting_chunk_ids=("colours/bikes",),
        answer_span=(0, 14),
    ),
    ClaimDetail(claim="Cars are blue.", verdict="CONTRADICTED", answer_span=(15, 29)),
    ClaimDetail(claim="Trams can fly.", verdict="NOT_ENOUGH_INFO", answer_span=(30, 40)),
)
HOSTILE = "[bold red]SUPPORTED[/] \x1b[2J\x1b]0;title\x07\x9b31m :bomb: \u202egnol \ud800 [link=x]"


def shown(renderable, **options):
    console = Console(
        file=io.StringIO(), width=100, highlight=False, markup=False, emoji=False, **options
    )
    console.print(renderable)
    return console.file.getvalue()


def question(**changes):
    return Question(
        **{
            "id": "colours",
            "kind": "faithful",
            "question": "Which colour?",
            "answer": ANSWER,
            "sources": (),
            "grounded": True,
            "note": "Look.",
            **changes,
        }
    )


def live(claims=CLAIMS, *, answer=ANSWER, query="Which colour?", **changes):
    scored = {"evaluator_name": "faithfulness", "score": 0.25, "passed": False, "claims": claims}
    result = EvaluationResult(**{**scored, **changes})
    case = RAGTestCase(query=query, response=answer, context=[ContextChunk(text="t", id="c")])
    return Evaluation(case=case, results={"faithfulness": result}, run=RunInfo(run_id="r"), lag=0.0)


def test_each_verdict_is_shown_in_place_with_sign_and_number():
    text = colour_claims(ANSWER, CLAIMS).plain
    assert text == "Bikes are red. [+1] Cars are blue. [x2] Trams fly. [?3]"


def test_each_verdict_has_its_own_colour_in_the_answer():
    output = shown(colour_claims(ANSWER, CLAIMS), force_terminal=True, color_system="truecolor")
    for look in VERDICTS.values():
        red, green, blue = (int(look.color[i : i + 2], 16) for i in (1, 3, 5))
        assert f"38;2;{red};{green};{blue}m" in output


def test_where_claims_overlap_the_heavier_verdict_is_seen():
    claims = [
        ClaimDetail(claim="a", verdict="CONTRADICTED", answer_span=(0, 5)),
        ClaimDetail(claim="b", verdict="SUPPORTED", answer_span=(0, 5)),
    ]
    output = shown(colour_claims("Bikes", claims), force_terminal=True, color_system="truecolor")
    assert re.search(r"38;2;215;0;0mBikes", output)


def test_a_claim_that_was_not_located_is_shown_in_its_own_words():
    claim = ClaimDetail(claim="The bike is red.", verdict="SUPPORTED")
    output = shown(answer_view(question(), live((claim,)), number=1, total=1))
    assert "claim: The bike is red." in output


def test_words_and_signs_stand_beside_every_colour():
    output = shown(answer_view(question(), live(), number=1, total=1))
    for number, look in enumerate((VERDICTS[claim.verdict] for claim in CLAIMS), 1):
        assert f"[{look.sign}{number}] {look.word}" in output
    assert "faithfulness 0.25 fail" in output
    assert "evidence: All bikes are red.  (colours/bikes)" in output


def test_evidence_that_does_not_occur_in_the_context_is_marked():
    claim = ClaimDetail(claim="Bikes are red.", verdict="SUPPORTED", evidence="So they say.")
    output = shown(answer_view(question(), live((claim,)), number=1, total=1))
    assert "evidence (not found word for word in the context): So they say." in output


def test_an_unscored_answer_shows_its_status_and_no_figure():
    unscored = live((), score=None, passed=None, status="answer_refused")
    output = shown(answer_view(question(), unscored, number=1, total=1))
    assert "faithfulness answer_refused" in output
    assert "0." not in output


def test_without_a_terminal_there_is_no_escape_sequence():
    assert "\x1b" not in shown(answer_view(question(), live(), number=1, total=1))


def test_no_color_removes_every_colour():
    options = {"force_terminal": True, "_environ": {"NO_COLOR": "1", "TERM": "xterm-256color"}}
    output = shown(answer_view(question(), live(), number=1, total=1), **options)
    assert re.search(r"\x1b\[[\d;]*\b(3\d|4\d|9\d)\b", output) is None
    assert "[x2] contradicted" in output


@pytest.mark.parametrize("look", [*VERDICTS.values(), UNDECIDED], ids=lambda look: look.word)
@pytest.mark.parametrize("background", ["#ffffff", "#000000"])
def test_colours_are_readable_on_white_and_on_black(look, background):
    light, dark = sorted((luminance(look.color), luminance(background)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3.8


@pytest.mark.parametrize("field", ["question", "answer", "claim", "evidence", "reason", "chunk"])
def test_hostile_text_is_shown_and_not_obeyed(field):
    text = dict.fromkeys(("question", "answer", "claim", "evidence", "reason", "chunk"), "calm")
    text[field] = HOSTILE
    claim = ClaimDetail(
        claim=text["claim"],
        verdict="SUPPORTED",
        evidence=text["evidence"],
        reason=text["reason"],
        evidence_verified=True,
        supporting_chunk_ids=(text["chunk"],),
    )
    result = live((claim,), answer=text["answer"], query=text["question"])
    view = answer_view(question(note="calm"), result, number=1, total=1)
    output = shown(view, force_terminal=True, color_system="truecolor")
    flat = " ".join(re.sub(r"\x1b\[[\d;]*m", "", output).split())
    assert "[bold red]SUPPORTED[/]" in flat
    assert ":bomb:" in flat
    assert "[link=x]" in flat
    assert [c for c in flat if unicodedata.category(c) in {"Cc", "Cf", "Cs"}] == []


@given(st.text(st.characters(categories=None)))
def test_cleaned_text_keeps_its_length_and_can_be_encoded(text):
    cleaned = clean(text)
    assert len(cleaned) == len(text)
    assert cleaned.encode().decode() == cleaned
    assert not any(unicodedata.category(c) == "Cc" for c in cleaned if c not in "\n\t")
    assert clean(cleaned) == cleaned


@given(
    st.text(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=4)
)
def test_marks_never_change_the_answer_itself(answer, spans):
    claims = [
        ClaimDetail(claim="c", verdict="CONTRADICTED", answer_span=(min(span), max(span)))
        for span in spans
    ]
    text = colour_claims(answer, claims).plain
    for number in range(len(claims), 0, -1):
        assert f" [x{number}]" in text
        text = text.replace(f" [x{number}]", "", 1)
    assert text == clean(answer)


def test_counts_show_outcomes_statuses_and_cost():
    stats = MonitorStats(
        started=3,
        outcomes={"evaluated": 2, "sampled_out": 1},
        evaluations={"faithfulness": {"scored": 1, "no_claims": 1}},
        usage=JudgeUsage(input_tokens=7, requests=2, cost_usd=0.5),
    )
    output = shown(counts_view(stats))
    assert "Runs started: 3   evaluated 2, sampled_out 1" in output
    assert re.search(r"faithfulness\W+1\W+1", output)
    assert "2 requests, 7 tokens, cost 0.5000 US dollars" in output


def test_an_unknown_price_is_not_shown_as_zero():
    output = shown(counts_view(MonitorStats(usage=JudgeUsage(requests=1, cost_usd=None))))
    assert "cost unknown" in output


def test_answers_the_judge_gets_wrong_are_named():
    items = [question(id=name, grounded=grounded) for name, grounded in READER]
    results = {
        "right": live(CLAIMS[:1]),
        "missed": live(CLAIMS[2:]),
        "fooled": live(CLAIMS[:1]),
        "declined": live(()),
    }
    assert disagreements(items, results) == (["missed", "fooled"], 3)
    assert "agree on 1 of 3" in shown(reader_view(items, results))
    assert "gets wrong: missed, fooled." in shown(reader_view(items, results))


READER = [("right", True), ("missed", True), ("fooled", False), ("declined", None)]


def luminance(color):
    def linear(part):
        share = int(part, 16) / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(color[i : i + 2]) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

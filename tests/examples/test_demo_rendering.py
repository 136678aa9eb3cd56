"""What the demo shows: verdicts readable without colour, hostile text harmless."""

import io
import re
import unicodedata

import pytest
from rich.console import Console

from handbook.answers import answer_view, colour_claims
from handbook.palette import VERDICTS
from handbook.questions import Question
from ragaliq import (
    ClaimDetail,
    ContextChunk,
    Evaluation,
    EvaluationResult,
    RAGTestCase,
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
    return Evaluation(case=case, results={"faithfulness": result})


def test_each_verdict_is_shown_in_place_with_sign_and_number():
    text = colour_claims(ANSWER, CLAIMS).plain
    assert text == "Bikes are red. [+1] Cars are blue. [x2] Trams fly. [?3]"


def test_words_and_signs_stand_beside_every_colour():
    output = shown(answer_view(question(), live(), number=1, total=1))
    for number, look in enumerate((VERDICTS[claim.verdict] for claim in CLAIMS), 1):
        assert f"[{look.sign}{number}] {look.word}" in output
    assert "faithfulness 0.25 fail" in output
    assert "evidence: All bikes are red.  (colours/bikes)" in output


def test_no_color_removes_every_colour():
    options = {"force_terminal": True, "_environ": {"NO_COLOR": "1", "TERM": "xterm-256color"}}
    output = shown(answer_view(question(), live(), number=1, total=1), **options)
    assert re.search(r"\x1b\[[\d;]*\b(3\d|4\d|9\d)\b", output) is None
    assert "[x2] contradicted" in output


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

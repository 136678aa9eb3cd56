"""The report's table of questions that got no supported answer."""

import html
import re

import pytest

from ragaliq import RAGTestCase, ScoringPolicy, evaluate
from ragaliq.judges.base import JudgeResult
from ragaliq.reports import write_report
from ragaliq.testing import ScriptedJudge

SHOP = ["The shop opens at 9.", "Refunds take five working days."]
SUPPORTED = ("The shop opens at 9.", SHOP)
INVENTED = ("Parrots juggle lanterns daily. They wear hats.", SHOP)
DECLINED = ("I don't know.", SHOP)
EMPTY = ("", SHOP)
NO_CONTEXT = ("The shop opens at 9.", [])


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The rows of the table for these questions and answers: question, count, reasons."""
    monkeypatch.chdir(tmp_path)

    def table(*asked, captures=True):
        cases = [
            RAGTestCase(id=f"run-{number}", query=question, response=answer, context=context)
            for number, (question, (answer, context)) in enumerate(asked)
        ]
        evaluate(
            cases,
            metrics=["faithfulness"],
            policy=ScoringPolicy.LIVE,
            sinks=["sqlite:///live.db"],
            concurrency=1,  # of equally frequent wordings the first one is shown
            capture_content=captures,
        )
        write_report("sqlite:///live.db", "report.html")
        page = (tmp_path / "report.html").read_text()
        if "Unanswered questions" not in page:
            return None
        section = page.split('id="unanswered-title"')[1].split("</section>")[0]
        rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", section, re.DOTALL)
        cells = [re.split(r"</t[hd]>", row) for row in rows]
        text = [[html.unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in r] for r in cells]
        return [row[:3] for row in text]

    return table


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SUPPORTED, None),
        (INVENTED, "low support 1"),
        (DECLINED, "declined 1"),
        (EMPTY, "empty answer 1"),
        (NO_CONTEXT, "no context 1"),
    ],
)
def test_each_way_of_not_answering_has_its_reason(table, answer, reason):
    expected = None if reason is None else [["When does it open?", "1", reason]]
    assert table(("When does it open?", answer)) == expected


def test_questions_of_a_like_wording_are_one_row_and_others_are_not(table):
    rows = table(
        ("How long do refunds take?", DECLINED),
        ("how long do refunds take", DECLINED),
        ("How long does a refund take?", INVENTED),
        ("How long does shipping take?", DECLINED),
        ("退款需要多长时间?", DECLINED),
        ("Wie lange dauert der Versand?", NO_CONTEXT),
    )
    refunds = rows[0]
    assert refunds[0].startswith("How long do refunds take?")
    assert "also: How long does a refund take?" in refunds[0]
    assert refunds[1:] == ["3", "declined 2low support 1"]
    assert {row[0] for row in rows[1:]} == {
        "How long does shipping take?",
        "退款需要多长时间?",
        "Wie lange dauert der Versand?",
    }


def test_a_question_is_text_and_never_markup(table):
    ((question, *_),) = table(("<img src=x onerror=alert(1)> & co?", DECLINED))
    assert question == "<img src=x onerror=alert(1)> & co?"


def test_a_question_with_a_document_pasted_into_it_is_cut(table):
    ((question, *_),) = table(
        (f"What does this say? {'Refunds take five days. ' * 9_000}", DECLINED)
    )
    assert question.startswith("What does this say? Refunds")
    assert len(question) <= 300


def test_without_texts_there_are_no_questions(table):
    assert table(("When does it open?", DECLINED), captures=False) is None


def test_the_shares_of_declines_are_shown_and_those_whose_context_held_the_answer_apart(tmp_path):
    class Trusted(ScriptedJudge):
        async def evaluate_context_relevance(self, query, chunk):
            return JudgeResult(score=0.9 if "refund" in query else 0.1)

    questions = ["When does it open?", "How long do refunds take?", "Who owns it?", "What is sold?"]
    answers = [SUPPORTED, DECLINED, DECLINED, DECLINED]
    evaluate(
        [
            RAGTestCase(query=question, response=answer, context=context)
            for question, (answer, context) in zip(questions, answers, strict=True)
        ],
        metrics=["faithfulness"],
        judge=Trusted(),
    ).write_report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "2 (50%) declined, 1 (25%) declined, though the context held the answer." in page

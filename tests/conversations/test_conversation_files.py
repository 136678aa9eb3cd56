"""What claims rest on, for the conversations of the table as files and lists hold them."""

import json

import pytest
from conversations_table import CONVERSATIONS

from ragaliq import RAGTestCase, Turn, evaluate
from ragaliq.datasets import read_cases


def history_of(conversation):
    return [
        turn
        for each in conversation.exchanges[:-1]
        for turn in (
            {"role": "user", "content": each.question},
            {"role": "assistant", "content": each.answer, "contexts": list(each.chunks)},
        )
    ]


def sources_in(evaluation):
    claims = evaluation.results["faithfulness"].claims
    return {claim.claim: claim.support_source for claim in claims}


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.name)
def test_claims_rest_on_what_the_table_says(conversation, tmp_path):
    *_, last = conversation.exchanges
    row = {
        "question": last.question,
        "contexts": list(last.chunks),
        "answer": last.answer,
        "history": history_of(conversation),
    }
    path = tmp_path / "conversation.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    [evaluation] = evaluate(read_cases(path), metrics=["faithfulness"], judge="local")
    assert sources_in(evaluation) == conversation.expected


@pytest.mark.parametrize(
    ("message", "answer", "expected"),
    [
        ("does the warranty cover water damage", "The warranty covers water damage.", None),
        ("so tell me why refunds take 30 days", "Refunds take 30 days.", None),
        ("Please confirm that refunds take 30 days.", "Refunds take 30 days.", None),
        ("can I return it within 60 days", "You can return it within 60 days.", None),
        ("I thought refunds take 30 days.", "Refunds take 30 days.", None),
        ("When I ordered, I paid 20 euros.", "You paid 20 euros.", "user"),
        ("I live in Norway.", "You live in Norway.", "user"),
    ],
)
def test_what_a_user_asks_or_supposes_supports_nothing(message, answer, expected):
    case = RAGTestCase(
        query=message,
        context=["We sell shoes."],
        response=answer,
        history=[Turn(role="user", text="Hello!"), Turn(role="assistant", text="How can I help?")],
    )
    [evaluation] = evaluate([case], metrics=["faithfulness"], judge="local")
    assert sources_in(evaluation) == {answer: expected}

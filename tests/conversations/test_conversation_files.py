"""What claims rest on, for the conversations of the table as files and lists hold them."""

from __future__ import annotations

import json

import pytest
from conversations_table import CONVERSATIONS

from ragaliq import evaluate
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
    [evaluation] = evaluate(read_cases(path), evaluators=["faithfulness"], judge="local")
    assert sources_in(evaluation) == conversation.expected

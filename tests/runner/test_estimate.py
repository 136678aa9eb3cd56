from __future__ import annotations

import pytest

from ragaliq import ClaudeJudge, ConfigurationError, RAGTestCase, estimate, evaluate
from ragaliq.testing import MessagesServer, PlainScriptedJudge

LAMP = "The Aurora lamp weighs 310 grams. Its battery lasts twelve hours on the low setting. " * 8
SHOP = "Refunds are paid within five working days after the parcel has arrived at our store. " * 12


@pytest.fixture
def cases():
    return [
        RAGTestCase(
            query=f"What about number {i}?",
            context=[LAMP, SHOP, f"Number {i} was made in {1990 + i}."][: 1 + i % 3],
            response=" ".join(
                [
                    "The Aurora lamp weighs 310 grams.",
                    "Its battery lasts fourteen hours.",
                    f"Number {i} was made in {1990 + i}.",
                    "It is sold in red and blue.",
                ][: 1 + i % 4]
            ),
        )
        for i in range(12)
    ]


@pytest.fixture
def server():
    with MessagesServer() as server:
        yield server


@pytest.mark.parametrize(
    "evaluators",
    [
        ["faithfulness"],
        ["faithfulness", "hallucination", "relevance"],
        ["context_precision"],
    ],
    ids=len,
)
def test_the_estimate_is_within_a_quarter_of_what_the_run_costs(cases, server, evaluators):
    judge = ClaudeJudge(api_key="not-a-key", base_url=server.url)
    expected = estimate(cases, evaluators=evaluators, judge=judge).usage
    assert not server.requests
    spent = evaluate(cases, evaluators=evaluators, judge=judge, concurrency=1).usage
    assert expected.requests == spent.requests == len(server.requests)
    assert expected.total_tokens == pytest.approx(spent.total_tokens, rel=0.25)
    assert expected.cost_usd == pytest.approx(spent.cost_usd, rel=0.25)
    assert expected.cost_usd > 0


def test_the_embedded_judge_costs_nothing(cases):
    usage = estimate(cases, judge="local").usage
    assert (usage.requests, usage.total_tokens, usage.cost_usd) == (0, 0, 0.0)


def test_an_unpriced_model_has_requests_and_tokens_but_no_price(cases, server):
    judge = ClaudeJudge("claude-of-the-future", api_key="not-a-key", base_url=server.url)
    usage = estimate(cases, judge=judge).usage
    assert usage.requests > 0
    assert usage.cost_usd is None


def test_a_judge_of_the_users_own_cannot_be_estimated(cases):
    with pytest.raises(ConfigurationError, match="PlainScriptedJudge"):
        estimate(cases, judge=PlainScriptedJudge())

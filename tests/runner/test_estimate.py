from unittest.mock import MagicMock

import pytest

from loopback import MessagesServer
from ragaliq import (
    CascadeJudge,
    ClaudeJudge,
    ConfigurationError,
    LLMJudge,
    LocalJudge,
    RAGTestCase,
    estimate,
    evaluate,
)
from ragaliq.judges.small import EntailmentJudge
from ragaliq.lab.calibration import fit_calibration
from ragaliq.testing import PlainScriptedJudge

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
def calibration():
    support = [(i + 0.5) / 200 for i in range(200)]
    labels = [(i * 0.6180339887) % 1.0 < share for i, share in enumerate(support)]
    return fit_calibration(LocalJudge(), support, labels)


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
    expected = estimate(cases, metrics=evaluators, judge=judge).usage
    assert not server.requests
    spent = evaluate(cases, metrics=evaluators, judge=judge, concurrency=1).usage
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


def test_a_cascade_costs_what_its_screen_escalates(cases, calibration):
    claude = ClaudeJudge(api_key="not-a-key")
    alone = estimate(cases, metrics=["faithfulness"], judge=claude).usage
    screened = [
        estimate(
            cases,
            metrics=["faithfulness"],
            judge=CascadeJudge(
                LocalJudge(), claude, escalate=share, audit=0.0, calibration=calibration
            ),
        ).usage
        for share in (0.2, 1.0)
    ]
    assert screened[0].cost_usd < screened[1].cost_usd < alone.cost_usd
    # Claims are found by the embedded judge, so one request an answer is left.
    assert screened[1].requests == len(cases)
    assert screened[0].requests < len(cases)


def test_a_screen_that_cannot_be_rehearsed_is_taken_to_escalate_everything(cases):
    cheap = ClaudeJudge("claude-haiku-4-5", api_key="not-a-key")
    dear = ClaudeJudge(api_key="not-a-key")
    usage = estimate(cases, metrics=["faithfulness"], judge=CascadeJudge(cheap, dear)).usage
    assert usage.requests == 3 * len(cases)


def test_an_entailment_model_costs_nothing_and_is_not_run(cases, calibration):
    model = EntailmentJudge(lambda pairs: 1 / 0)
    assert estimate(cases, judge=model).usage.cost_usd == 0.0
    three = CascadeJudge(
        LocalJudge(), model, ClaudeJudge(api_key="not-a-key"), calibration=calibration
    )
    assert estimate(cases, judge=three).usage.cost_usd > 0.0


@pytest.mark.parametrize("judge", [PlainScriptedJudge(), MagicMock(spec=LLMJudge)])
def test_a_judge_of_the_users_own_cannot_be_estimated(cases, judge):
    with pytest.raises(ConfigurationError, match=type(judge).__name__):
        estimate(cases, judge=judge)


def test_a_judge_of_the_users_own_may_estimate_itself(cases):
    class Own(PlainScriptedJudge):
        def estimate(self):
            return self

    assert estimate(cases, judge=Own()).cases == len(cases)


@pytest.mark.parametrize("judge", ["claude", "openai:gpt-5-mini", "local>claude"])
def test_an_estimate_needs_no_key_since_it_sends_nothing(monkeypatch, cases, judge):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "")
    assert estimate(cases, judge=judge).usage.cost_usd > 0

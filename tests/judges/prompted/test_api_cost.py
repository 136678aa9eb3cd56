"""Tokens and money, cached tokens apart."""

import logging

import pytest

from loopback import Reply
from ragaliq.core.results import JudgeUsage
from ragaliq.judges import pricing
from ragaliq.judges.pricing import cost_usd

LONG = ["The Eiffel Tower is in Paris. " * 200, "It is painted brown. " * 200]
MTOK = 1_000_000

claude_only = pytest.mark.parametrize("api", ["claude"], indirect=True)
openai_only = pytest.mark.parametrize("api", ["openai"], indirect=True)


async def test_claims_over_one_context_read_it_from_the_cache(api, judge):
    first = (await judge.verify_claim("It is in Paris.", LONG)).spent()
    second = (await judge.verify_claim("It is painted brown.", LONG)).spent()
    batch = (await judge.verify_claims(["It is in Rome.", "It is brown."], LONG)).spent()

    assert first.cache_read_tokens == 0
    assert second.cache_read_tokens == batch.cache_read_tokens >= 2048
    if api.name == "claude":
        assert second.cache_read_tokens == first.cache_write_tokens
        assert second.cache_write_tokens == batch.cache_write_tokens == 0
        assert second.input_tokens == pytest.approx(first.input_tokens, abs=10)
        assert second.cost_usd < first.cost_usd / 2


@claude_only
async def test_the_shared_context_comes_first_and_is_marked(server, judge):
    await judge.verify_claims(["It is in Paris."], LONG)

    context, claims = server.requests[0].blocks
    assert context["cache_control"] == {"type": "ephemeral"}
    assert context["text"].startswith('<context>\n<chunk id="0">')
    assert context["text"].endswith("</context>")
    assert "cache_control" not in claims


@claude_only
@pytest.mark.parametrize("method", ["grade_statements", "extract_statements"])
async def test_what_is_sent_once_is_not_written_to_the_cache(server, judge, method):
    arguments = ("Where?", "It is in Paris.") + ((LONG,) if method == "grade_statements" else ())
    result = await getattr(judge, method)(*arguments)

    assert result.spent().cache_write_tokens == 0
    assert len(server.requests[0].blocks) == 1


SAID = {"prompt_tokens": 10, "completion_tokens": 2}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, {}),
        ({}, {}),
        ({"total_tokens": 12}, {"unsplit_tokens": 12}),
        (SAID | {"prompt_tokens": "many", "prompt_tokens_details": 4}, {"output_tokens": 2}),
        (
            SAID | {"prompt_tokens_details": {"cached_tokens": 99, "cache_write_tokens": -1}},
            {"cache_read_tokens": 10, "output_tokens": 2},
        ),
        (
            SAID | {"prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4}},
            dict.fromkeys(["input_tokens", "cache_read_tokens"], 3)
            | {"cache_write_tokens": 4, "output_tokens": 2},
        ),
    ],
)
@openai_only
async def test_whatever_a_server_says_of_tokens_is_counted_as_far_as_it_goes(
    server, judge, usage, expected
):
    server.always(Reply(edit=lambda body: body | {"usage": usage}))

    spent = (await judge.evaluate_relevance("a", "b")).spent()

    assert spent == JudgeUsage(**expected, requests=1, cost_usd=None)


async def test_a_model_without_a_known_price_costs_none(server, judge_at):
    result = await judge_at(server, model="model-of-tomorrow").evaluate_relevance("a", "b")

    assert result.spent().cost_usd is None
    assert result.spent().total_tokens > 0


@openai_only
@pytest.mark.parametrize(
    ("url", "is_sold"),
    [
        ("http://localhost:11434/v1", False),
        ("https://models.example.org/v1", False),
        ("https://api.groq.com/openai/v1", True),
    ],
)
def test_only_a_known_seller_has_a_price(api, url, is_sold):
    judge = api.make(base_url=url, model="llama-3.1-8b-instant", api_key="k")

    price = judge.price(JudgeUsage(input_tokens=MTOK, requests=1))

    assert price > 0 if is_sold else price is None


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (JudgeUsage(), 0.0),
        (JudgeUsage(input_tokens=MTOK), 2.0),
        (JudgeUsage(output_tokens=MTOK), 10.0),
        (JudgeUsage(cache_write_tokens=MTOK), 2.5),
        (JudgeUsage(cache_read_tokens=MTOK), 0.1),
        (JudgeUsage(input_tokens=MTOK, cache_read_tokens=MTOK, cache_write_tokens=MTOK), 4.6),
        (JudgeUsage(unsplit_tokens=10), None),
    ],
)
def test_each_token_is_charged_once_at_its_own_price(usage, dollars):
    assert cost_usd("claude-sonnet-5-5", usage, provider="anthropic") == pytest.approx(dollars)


def test_an_unknown_price_is_reported_once(caplog, monkeypatch):
    monkeypatch.setattr(pricing, "_unpriced", set())
    with caplog.at_level(logging.WARNING, logger="ragaliq"):
        for _ in range(2):
            assert cost_usd("no-such-model", JudgeUsage(input_tokens=1)) is None

    assert caplog.messages == [
        "the price of model no-such-model is not known; its cost is reported as None"
    ]

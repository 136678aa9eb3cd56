"""Tokens and prices from what each vendor, gateway and framework says; unknown is not zero."""

from types import SimpleNamespace

import pytest

from ragaliq import Budget, ChatModelJudge, ModelReply
from ragaliq.core.results import JudgeUsage
from ragaliq.judges.vendors import usage_of
from ragaliq.scoring.limits.budget import BudgetLedger

SCORE = '{"reasoning": "so", "score": 0.5}'

# By who says it: its words, and the tokens: input, output, read from the cache, written to it.
SAID = {
    "OpenAI, chat": (
        {"prompt_tokens": 20_000, "completion_tokens": 500, "total_tokens": 20_500}
        | {"prompt_tokens_details": {"cached_tokens": 18_000}},
        (2_000, 500, 18_000, 0),
    ),
    "OpenAI, responses": (
        {"input_tokens": 20_000, "output_tokens": 500, "total_tokens": 20_500}
        | {"input_tokens_details": {"cached_tokens": 18_000}},
        (2_000, 500, 18_000, 0),
    ),
    "DeepSeek": (
        {"prompt_tokens": 20_000, "completion_tokens": 500, "prompt_cache_hit_tokens": 18_000}
        | {"prompt_cache_miss_tokens": 2_000, "prompt_tokens_details": {"cached_tokens": 18_000}},
        (2_000, 500, 18_000, 0),
    ),
    "xAI, whose reasoning is in the total only": (
        {"prompt_tokens": 20_000, "completion_tokens": 100, "total_tokens": 20_500},
        (20_000, 500, 0, 0),
    ),
    "Anthropic": (
        {"input_tokens": 2_000, "output_tokens": 500, "cache_read_input_tokens": 18_000}
        | {"cache_creation_input_tokens": 300},
        (2_000, 500, 18_000, 300),
    ),
    "Anthropic, translated by a gateway": (
        {"prompt_tokens": 20_300, "completion_tokens": 500, "total_tokens": 20_800}
        | {"cache_read_input_tokens": 18_000, "cache_creation_input_tokens": 300}
        | {"prompt_tokens_details": {"cached_tokens": 18_000, "cache_write_tokens": 300}},
        (2_000, 500, 18_000, 300),
    ),
    "Gemini": (
        {"prompt_token_count": 20_000, "candidates_token_count": 100, "thoughts_token_count": 400}
        | {"total_token_count": 20_500, "cached_content_token_count": 18_000},
        (2_000, 500, 18_000, 0),
    ),
    "Gemini, over HTTP": (
        {"promptTokenCount": 20_000, "candidatesTokenCount": 500, "totalTokenCount": 20_500}
        | {"cachedContentTokenCount": 18_000},
        (2_000, 500, 18_000, 0),
    ),
    "Bedrock": (
        {"inputTokens": 2_000, "outputTokens": 500, "totalTokens": 20_800}
        | {"cacheReadInputTokens": 18_000, "cacheWriteInputTokens": 300},
        (2_000, 500, 18_000, 300),
    ),
    "Ollama": ({"prompt_eval_count": 2_000, "eval_count": 500}, (2_000, 500, 0, 0)),
    "LangChain": (
        {"input_tokens": 20_300, "output_tokens": 500, "total_tokens": 20_800}
        | {"input_token_details": {"cache_read": 18_000, "cache_creation": 300}},
        (2_000, 500, 18_000, 300),
    ),
    "LangChain, caches by their time": (
        {"input_tokens": 20_300, "output_tokens": 500, "total_tokens": 20_800}
        | {
            "input_token_details": {
                "cache_read": 18_000,
                "cache_creation": 0,
                "ephemeral_5m_input_tokens": 200,
                "ephemeral_1h_input_tokens": 100,
            }
        },
        (2_000, 500, 18_000, 300),
    ),
}


def objects(value):
    """The same as a client's own objects."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: objects(inner) for key, inner in value.items()})
    return value


@pytest.mark.parametrize("who", SAID)
@pytest.mark.parametrize(
    "hold",
    [
        lambda said: said,
        objects,
        lambda said: {"usage": said},
        lambda said: SimpleNamespace(usage=objects(said)),
        lambda said: {"usage_metadata": objects(said), "model": "m"},
    ],
)
def test_each_token_is_in_one_figure_whoever_counts_it(who, hold):
    said, (fresh, written, read, kept) = SAID[who]
    assert usage_of(hold(said)) == JudgeUsage(
        input_tokens=fresh,
        output_tokens=written,
        cache_read_tokens=read,
        cache_write_tokens=kept,
        requests=1,
        cost_usd=None,
    )


@pytest.mark.parametrize("said", [None, {}, {"usage": None}, {"usage": "many"}, object()])
def test_what_is_not_said_is_unknown(said):
    assert usage_of(said) == JudgeUsage(requests=1, cost_usd=None)


def judge_saying(**fields):
    async def complete(system, user):
        return ModelReply(text=SCORE, **fields)

    return ChatModelJudge(complete, model="claude-sonnet-5-5")


async def test_cached_tokens_of_a_framework_s_model_have_their_own_price():
    judge = judge_saying(usage=SAID["LangChain"][0])
    spent = (await judge.evaluate_relevance("q", "a")).spent()
    # A million tokens: 2 dollars fresh, 10 written, 0.1 from the cache, 2.5 to the cache.
    dollars = (2_000 * 2 + 500 * 10 + 18_000 * 0.1 + 300 * 2.5) / 1_000_000
    assert spent.cost_usd == pytest.approx(dollars)


async def test_a_reply_that_says_nothing_of_its_tokens_has_no_price_and_budgets_notice():
    spent = (await judge_saying().evaluate_relevance("q", "a")).spent()
    assert spent == JudgeUsage(requests=1, cost_usd=None)

    ledger = BudgetLedger(Budget(usd_per_hour=1.0, tokens_per_day=1000))
    ledger.settle(await ledger.reserve(), spent)
    assert {name: line.left for name, line in ledger.lines().items()} == {
        "usd_per_hour": 0.0,
        "tokens_per_day": 0.0,
    }

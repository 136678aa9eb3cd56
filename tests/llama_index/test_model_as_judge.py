"""A LlamaIndex model as the judge: refusals, cuts and tokens of every vendor's client."""

from types import SimpleNamespace

import genai_prices  # noqa: F401 - read before a loop runs: judges are built on one here
import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms import MockLLM

from llama_index.evaluation.ragaliq.judge import judge_of
from ragaliq.errors import JudgeRefusalError, JudgeResponseError

SCORE = '{"reasoning": "so", "score": 0.5}'


def judging(raw=None, counted=None):
    class Recorded(MockLLM):
        def chat(self, messages, **options):
            message = ChatMessage(role="assistant", content=SCORE)
            return ChatResponse(message=message, raw=raw, additional_kwargs=counted or {})

    return judge_of(Recorded())


def choice(**fields):
    message = SimpleNamespace(content=SCORE, refusal=None)
    return SimpleNamespace(**{"finish_reason": "stop", "message": message, **fields})


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (SimpleNamespace(choices=[choice(finish_reason="content_filter")]), JudgeRefusalError),
        (SimpleNamespace(choices=[choice(finish_reason="length")]), JudgeResponseError),
        (
            SimpleNamespace(choices=[choice(message=SimpleNamespace(refusal="I cannot."))]),
            JudgeRefusalError,
        ),
        ({"stop_reason": "refusal"}, JudgeRefusalError),
        ({"stop_reason": "max_tokens"}, JudgeResponseError),
        ({"candidates": [{"finish_reason": "SAFETY"}]}, JudgeRefusalError),
        ({"stopReason": "guardrail_intervened"}, JudgeRefusalError),
    ],
)
async def test_a_refusal_and_a_cut_are_told(raw, error):
    with pytest.raises(error):
        await judging(raw).evaluate_relevance("q", "a")


# By client: what it hands over, and the tokens: input, output, read from the cache.
HANDED_OVER = {
    "OpenAI": (
        SimpleNamespace(
            choices=[choice()],
            usage=SimpleNamespace(
                prompt_tokens=100,
                completion_tokens=20,
                prompt_tokens_details=SimpleNamespace(cached_tokens=64),
            ),
        ),
        (36, 20, 64),
    ),
    "Anthropic": (
        {
            "stop_reason": "end_turn",
            "usage": SimpleNamespace(input_tokens=36, output_tokens=20, cache_read_input_tokens=64),
        },
        (36, 20, 64),
    ),
    "Gemini": (
        {
            "usage_metadata": {
                "prompt_token_count": 100,
                "candidates_token_count": 20,
                "cached_content_token_count": 64,
            }
        },
        (36, 20, 64),
    ),
    "Bedrock": (
        {"usage": {"inputTokens": 36, "outputTokens": 20, "cacheReadInputTokens": 64}},
        (36, 20, 64),
    ),
    "Ollama": ({"prompt_eval_count": 100, "eval_count": 20}, (100, 20, 0)),
}


@pytest.mark.parametrize("client", HANDED_OVER)
async def test_tokens_are_found_in_what_the_client_hands_over(client):
    raw, counted = HANDED_OVER[client]
    spent = (await judging(raw).evaluate_relevance("q", "a")).spent()
    assert (spent.input_tokens, spent.output_tokens, spent.cache_read_tokens) == counted


async def test_tokens_are_found_in_the_client_s_own_counts_and_else_unknown():
    counted = judging(counted={"prompt_tokens": 100, "completion_tokens": 20})
    spent = (await counted.evaluate_relevance("q", "a")).spent()
    assert (spent.input_tokens, spent.output_tokens) == (100, 20)
    assert (await judging().evaluate_relevance("q", "a")).spent().cost_usd is None

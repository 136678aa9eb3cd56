"""A LangChain chat model as the judge: refusals, cuts and tokens of every vendor's client."""

import genai_prices  # noqa: F401 - read before a loop runs: judges are built on one here
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from langchain_ragaliq.judge import judge_of
from ragaliq.errors import JudgeBillingError, JudgeRefusalError, JudgeResponseError

SCORE = '{"reasoning": "so", "score": 0.5}'
USAGE = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}


def judging(message):
    return judge_of(GenericFakeChatModel(messages=iter([message, message])))


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (AIMessage("", response_metadata={"stop_reason": "refusal"}), JudgeRefusalError),
        (AIMessage("", response_metadata={"finish_reason": "content_filter"}), JudgeRefusalError),
        (AIMessage("", response_metadata={"finish_reason": "SAFETY"}), JudgeRefusalError),
        (
            AIMessage("", response_metadata={"stopReason": "guardrail_intervened"}),
            JudgeRefusalError,
        ),
        (AIMessage("", additional_kwargs={"refusal": "I cannot."}), JudgeRefusalError),
        (AIMessage(SCORE[:9], response_metadata={"finish_reason": "length"}), JudgeResponseError),
        (AIMessage(SCORE[:9], response_metadata={"stop_reason": "max_tokens"}), JudgeResponseError),
        (AIMessage("", response_metadata={"finish_reason": "MAX_TOKENS"}), JudgeResponseError),
    ],
)
async def test_a_refusal_and_a_cut_are_told_and_not_asked_for_again(message, error):
    message.usage_metadata = USAGE
    with pytest.raises(error) as caught:
        await judging(message).evaluate_relevance("q", "a")
    assert caught.value.usage.requests == 1
    assert caught.value.usage.input_tokens == 100
    if error is JudgeResponseError:
        assert "cut off" in str(caught.value)


@pytest.mark.parametrize(
    "message",
    [
        AIMessage(SCORE, usage_metadata=USAGE),
        AIMessage(
            SCORE,
            response_metadata={"token_usage": {"prompt_tokens": 100, "completion_tokens": 20}},
        ),
        AIMessage(SCORE, response_metadata={"usage": {"inputTokens": 100, "outputTokens": 20}}),
    ],
)
async def test_tokens_are_found_where_the_client_puts_them(message):
    spent = (await judging(message).evaluate_relevance("q", "a")).spent()
    assert (spent.input_tokens, spent.output_tokens) == (100, 20)


async def test_tokens_that_no_client_says_are_unknown():
    spent = (await judging(AIMessage(SCORE)).evaluate_relevance("q", "a")).spent()
    assert spent.cost_usd is None


async def test_no_credit_is_told_through_the_client_s_error():
    class NoCreditError(Exception):
        def __init__(self):
            self.status_code = 429
            self.body = {"code": "insufficient_quota", "message": "PRIVATE"}

    class Broke(GenericFakeChatModel):
        def _generate(self, *args, **options):
            raise NoCreditError

    with pytest.raises(JudgeBillingError, match="add credit") as caught:
        await judge_of(Broke(messages=iter([]))).evaluate_relevance("q", "a")
    assert "PRIVATE" not in str(caught.value)

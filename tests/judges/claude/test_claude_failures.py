"""Every way the API can fail becomes one of our errors, once, without anything private in it."""

from __future__ import annotations

import socket
import traceback

import pytest

from ragaliq.errors import (
    JudgeAPIError,
    JudgeError,
    JudgeRefusalError,
    JudgeResponseError,
    JudgeTimeoutError,
)
from ragaliq.judges import ClaudeJudge
from ragaliq.testing import MessagesServer, Reply, faults
from ragaliq.testing.messages import api_error

CLAIM = "PRIVATE-CLAIM costs 5 euros."
CONTEXT = ["PRIVATE-CONTEXT says nothing of the kind."]
SDK_RETRIES = 2

EXPECTED = {
    "rate_limited": (JudgeAPIError, 1 + SDK_RETRIES),
    "server_error": (JudgeAPIError, 1 + SDK_RETRIES),
    "overloaded": (JudgeAPIError, 1 + SDK_RETRIES),
    "cut_off": (JudgeAPIError, 2),
    "refusal": (JudgeRefusalError, 1),
    "truncated": (JudgeResponseError, 1),
    "context_window_exceeded": (JudgeResponseError, 1),
    "malformed_json": (JudgeResponseError, 1),
    "wrong_schema": (JudgeResponseError, 1),
    "not_json": (JudgeResponseError, 1),
}


async def failure(judge: ClaudeJudge) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        await judge.verify_claims([CLAIM], CONTEXT)
    return caught.value


def test_every_fault_has_its_expectation():
    assert EXPECTED.keys() == faults.ALL.keys()


@pytest.mark.parametrize("name", EXPECTED)
async def test_each_fault_is_its_own_error_after_the_sdks_own_retries(server, judge_at, name):
    error_type, requests = EXPECTED[name]
    server.always(faults.ALL[name]())
    # The SDK waits half a second and more after a lost connection: one retry is enough to see it.
    retries = {"max_retries": 1} if name == "cut_off" else {}

    error = await failure(judge_at(server, **retries))

    assert type(error) is error_type
    assert len(server.requests) == requests


@pytest.mark.parametrize("name", EXPECTED)
async def test_no_error_carries_texts_or_keys_nor_is_chained_to_one_that_does(
    server, judge_at, key, name
):
    server.always(faults.ALL[name]())

    error = await failure(judge_at(server, max_retries=0))

    shown = "".join(traceback.format_exception(error, chain=True))
    message = str(error)
    for private in ("PRIVATE", key, "Sign in", "perhaps"):
        assert private not in message
    assert "pydantic" not in shown
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize(
    "name", ["refusal", "truncated", "context_window_exceeded", "malformed_json", "wrong_schema"]
)
async def test_a_reply_that_is_useless_still_tells_its_cost(server, judge_at, name):
    server.always(faults.ALL[name]())

    error = await failure(judge_at(server))

    assert error.usage.requests == 1
    assert error.usage.input_tokens + error.usage.cache_write_tokens > 0
    assert error.usage.cost_usd > 0


async def test_a_refusal_with_text_is_a_refusal(server, judge):
    server.always(faults.refusal(text="I can't discuss PRIVATE-CLAIM."))

    error = await failure(judge)

    assert isinstance(error, JudgeRefusalError)
    assert "PRIVATE" not in str(error)


async def test_a_reply_cut_off_at_max_tokens_says_so(server, judge_at):
    server.always(faults.truncated())

    error = await failure(judge_at(server, max_tokens=77))

    assert "max_tokens=77" in str(error)


async def test_a_slow_reply_is_a_timeout(server, judge_at):
    server.always(faults.slow(30))

    error = await failure(judge_at(server, timeout=0.05, max_retries=0))

    assert isinstance(error, JudgeTimeoutError)
    assert "0.05 s" in str(error)


async def test_the_sdk_repeats_what_can_be_repeated_and_the_answer_comes(server, judge):
    server.enqueue(faults.rate_limited(), faults.overloaded())

    result = await judge.verify_claims([CLAIM], [CLAIM])

    assert result.verdicts[0].verdict == "SUPPORTED"
    assert result.spent().requests == 1
    assert [request.headers["x-stainless-retry-count"] for request in server.requests] == [
        "0",
        "1",
        "2",
    ]


async def test_the_number_of_retries_is_the_callers_choice(server, judge_at):
    server.always(faults.rate_limited())

    await failure(judge_at(server, max_retries=0))
    assert len(server.requests) == 1

    await failure(judge_at(server, max_retries=4))
    assert len(server.requests) == 1 + 5


async def test_a_refused_connection_is_an_api_error(key):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        error = await failure(ClaudeJudge(api_key=key, base_url=url, max_retries=0))

    assert isinstance(error, JudgeAPIError)
    assert "base_url=" in str(error)


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "max_tokens="),
        (401, "ANTHROPIC_API_KEY"),
        (402, "billing"),
        (403, "may not use"),
        (404, "model's name"),
        (413, "too large"),
        (418, "settings"),
        (500, "try again"),
    ],
)
async def test_a_status_comes_with_advice_and_the_request_id_but_not_its_text(
    server, judge_at, key, status, advice
):
    server.always(api_error(status, "kind-PRIVATE", f"PRIVATE {CLAIM} {key}"))

    error = await failure(judge_at(server, max_retries=0))

    assert type(error) is JudgeAPIError
    assert str(status) in str(error)
    assert advice in str(error)
    assert "(request req_" in str(error)
    assert "PRIVATE" not in str(error)
    assert key not in str(error)


async def test_a_request_id_that_is_no_id_is_not_repeated(server, judge_at):
    server.always(Reply(status=400, body={}, headers={"request-id": f"see {CLAIM}"}))

    assert "PRIVATE" not in str(await failure(judge_at(server)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b'"text"',
        b"{}",
        b"null",
        b'{"content": "PRIVATE", "usage": {"input_tokens": 1}}',
        b'{"content": [], "usage": null}',
        b'{"content": [], "stop_reason": "end_turn", "usage": {"input_tokens": "many"}}',
        b'{"content": [{"type": "text", "text": null}], "usage": {}}',
    ],
)
async def test_something_else_answering_in_the_apis_place_is_a_response_error(server, judge, body):
    server.always(Reply(body=body))

    error = await failure(judge)

    assert type(error) is JudgeResponseError
    assert "PRIVATE" not in str(error)


async def test_an_html_page_in_the_apis_place_is_a_response_error(server, judge):
    server.always(Reply(body=b"<html>", headers={"content-type": "text/html"}))

    assert type(await failure(judge)) is JudgeResponseError


async def test_a_deeply_nested_reply_is_a_response_error(judge_at):
    text = "[" * 100_000
    edit = {"content": [{"type": "text", "text": text}]}
    with MessagesServer(respond=lambda _: Reply(edit=lambda body: body | edit)) as server:
        assert type(await failure(judge_at(server))) is JudgeResponseError

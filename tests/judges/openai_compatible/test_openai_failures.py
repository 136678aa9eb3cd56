"""Every way a server can fail becomes one of our errors, once, without anything private in it."""

from __future__ import annotations

import socket
import traceback

import pytest

from ragaliq import RAGTestCase, Status, evaluate_async
from ragaliq.errors import (
    JudgeAPIError,
    JudgeError,
    JudgeRefusalError,
    JudgeResponseError,
    JudgeTimeoutError,
)
from ragaliq.judges import OpenAICompatibleJudge
from ragaliq.testing import ChatCompletionsServer, Reply, faults
from ragaliq.testing.chat import chat_error

CLAIM = "PRIVATE-CLAIM costs 5 euros."
CONTEXT = ["PRIVATE-CONTEXT says nothing of the kind."]
KEY = "test-key-Zq81"
SDK_RETRIES = 2

EXPECTED = {
    "rate_limited": (JudgeAPIError, Status.JUDGE_ERROR, 1 + SDK_RETRIES),
    "server_error": (JudgeAPIError, Status.JUDGE_ERROR, 1 + SDK_RETRIES),
    "overloaded": (JudgeAPIError, Status.JUDGE_ERROR, 1 + SDK_RETRIES),
    "cut_off": (JudgeAPIError, Status.JUDGE_ERROR, 2),
    "refusal": (JudgeRefusalError, Status.JUDGE_REFUSED, 1),
    "truncated": (JudgeResponseError, Status.JUDGE_ERROR, 1),
    "context_window_exceeded": (JudgeResponseError, Status.JUDGE_ERROR, 1),
    "malformed_json": (JudgeResponseError, Status.JUDGE_ERROR, 1),
    "wrong_schema": (JudgeResponseError, Status.JUDGE_ERROR, 1),
    "not_json": (JudgeResponseError, Status.JUDGE_ERROR, 1),
}


async def failure(judge: OpenAICompatibleJudge) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        await judge.verify_claims([CLAIM], CONTEXT)
    await judge.aclose()
    return caught.value


def test_every_fault_has_its_expectation():
    assert EXPECTED.keys() == faults.ALL.keys()


@pytest.mark.parametrize("name", EXPECTED)
async def test_each_fault_is_its_own_error_after_the_sdks_own_retries(server, judge_at, name):
    error_type, _, requests = EXPECTED[name]
    server.always(faults.ALL[name]())
    # The SDK waits half a second and more after a lost connection: one retry is enough to see it.
    retries = {"max_retries": 1} if name == "cut_off" else {}

    error = await failure(judge_at(server, **retries))

    assert type(error) is error_type
    assert len(server.requests) == requests


@pytest.mark.parametrize("name", EXPECTED)
async def test_each_fault_is_its_own_status_and_leaves_the_other_cases_alone(judge_at, name):
    _, status, _ = EXPECTED[name]

    def respond(request):
        return faults.ALL[name]() if "unlucky" in request.text else Reply()

    cases = [
        RAGTestCase(id=word, query=word, context=["It is here."], response=f"The {word} answer.")
        for word in ("first", "unlucky", "last")
    ]
    with ChatCompletionsServer(respond=respond) as server:
        judge = judge_at(server, max_retries=0)
        run = await evaluate_async(cases, evaluators=["relevance"], judge=judge)
        await judge.aclose()

    statuses = [result.results["relevance"].status for result in run]
    assert statuses == [Status.SCORED, status, Status.SCORED]


@pytest.mark.parametrize("name", EXPECTED)
async def test_no_error_carries_texts_or_keys_nor_is_chained_to_one_that_does(
    server, judge_at, name
):
    server.always(faults.ALL[name]())

    error = await failure(judge_at(server, max_retries=0, api_key=KEY))

    shown = "".join(traceback.format_exception(error, chain=True))
    for private in ("PRIVATE", KEY, "Sign in", "perhaps"):
        assert private not in str(error)
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
    assert error.usage.input_tokens > 0
    assert error.usage.cost_usd is None


@pytest.mark.parametrize("content", [None, "", "half a reply"])
async def test_a_content_filter_is_a_refusal(server, judge, content):
    def edit(body):
        body["choices"][0] |= {"finish_reason": "content_filter", "message": {"content": content}}
        return body

    server.always(Reply(edit=edit))

    error = await failure(judge)

    assert type(error) is JudgeRefusalError
    assert "content filter" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        '{"error": "I cannot assess this content."}',
    ],
)
async def test_a_refusal_in_words_is_a_refusal(server, judge, text):
    server.always(Reply(text=lambda _: text))

    assert type(await failure(judge)) is JudgeRefusalError


async def test_a_reply_cut_off_says_what_to_raise(server, judge):
    server.always(faults.truncated())

    error = await failure(judge)

    assert "max_tokens=" in str(error)
    assert "context_window=" in str(error)


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


async def test_a_refused_connection_is_an_api_error():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        error = await failure(OpenAICompatibleJudge(base_url=url, model="m", max_retries=0))

    assert type(error) is JudgeAPIError
    assert "base_url=" in str(error)


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "context_window="),
        (401, "api_key="),
        (403, "may not use"),
        (404, "/v1"),
        (413, "too large"),
        (418, "settings"),
        (422, "model's name"),
        (500, "try again"),
        (503, "loading"),
    ],
)
async def test_a_status_comes_with_advice_and_the_request_id_but_not_its_text(
    server, judge_at, status, advice
):
    server.always(chat_error(status, f"PRIVATE {CLAIM} {KEY}", kind="kind-PRIVATE"))

    error = await failure(judge_at(server, max_retries=0, api_key=KEY))

    assert type(error) is JudgeAPIError
    assert str(status) in str(error)
    assert advice in str(error)
    assert "(request req_" in str(error)
    assert "PRIVATE" not in str(error)
    assert KEY not in str(error)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b'"text"',
        b"{}",
        b"null",
        b'{"choices": []}',
        b'{"choices": "PRIVATE"}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"choices": [{"message": {"content": null, "tool_calls": []}}]}',
    ],
)
async def test_something_else_answering_in_the_servers_place_is_a_response_error(
    server, judge, body
):
    server.always(Reply(body=body))

    error = await failure(judge)

    assert type(error) is JudgeResponseError
    assert "PRIVATE" not in str(error)


async def test_an_html_page_in_the_servers_place_is_a_response_error(server, judge):
    server.always(Reply(body=b"<html>", headers={"content-type": "text/html"}))

    error = await failure(judge)

    assert type(error) is JudgeResponseError
    assert "base_url=" in str(error)


async def test_a_deeply_nested_reply_is_a_response_error(server, judge):
    server.always(Reply(text=lambda _: "[" * 100_000))

    assert type(await failure(judge)) is JudgeResponseError

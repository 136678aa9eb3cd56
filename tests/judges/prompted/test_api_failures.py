"""Every way an API can fail becomes one of our errors, once, without anything private in it."""

import asyncio
import gzip
import resource
import socket
import ssl
import traceback

import pytest

from loopback import Reply, faults
from ragaliq import ChatModelJudge, JudgeUsage
from ragaliq.errors import (
    JudgeAPIError,
    JudgeError,
    JudgeRefusalError,
    JudgeResponseError,
    JudgeTimeoutError,
)
from self_signed import MISTRUSTED, self_signed

CLAIM = "PRIVATE-CLAIM costs 5 euros."
CONTEXT = ["PRIVATE-CONTEXT says nothing of the kind."]
SDK_RETRIES = 2

# By fault: the error, how often a server is asked, how many replies are paid. A reply of another
# form is asked for once more.
EXPECTED = {
    "rate_limited": (JudgeAPIError, 1 + SDK_RETRIES, False),
    "server_error": (JudgeAPIError, 1 + SDK_RETRIES, False),
    "overloaded": (JudgeAPIError, 1 + SDK_RETRIES, False),
    "cut_off": (JudgeAPIError, 2, False),
    "refusal": (JudgeRefusalError, 1, True),
    "truncated": (JudgeResponseError, 1, True),
    "context_window_exceeded": (JudgeResponseError, 1, True),
    "malformed_json": (JudgeResponseError, 2, 2),
    "wrong_schema": (JudgeResponseError, 2, 2),
    "not_json": (JudgeResponseError, 1, False),
}


async def failure(judge) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        await judge.verify_claims([CLAIM], CONTEXT)
    await judge.aclose()
    return caught.value


@pytest.mark.parametrize("name", EXPECTED)
async def test_each_fault_is_its_own_error_with_its_cost_after_the_sdks_own_retries(
    api, server, judge_at, name, key
):
    error_type, requests, paid = EXPECTED[name]
    server.always(faults.ALL[name]())
    # The SDK waits half a second and more after a lost connection: one retry is enough to see it.
    retries = {"max_retries": 1} if name == "cut_off" else {}

    error = await failure(judge_at(server, **retries))

    assert type(error) is error_type
    assert len(server.requests) == requests
    usage = error.usage or JudgeUsage()
    assert usage.requests == paid
    assert (usage.input_tokens + usage.cache_write_tokens > 0) is bool(paid)
    if api.name == "claude":
        assert (usage.cost_usd > 0) is bool(paid)
    for private in ("PRIVATE", key, "Sign in", "perhaps"):
        assert private not in str(error)
    assert "pydantic" not in "".join(traceback.format_exception(error, chain=True))
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (faults.refusal(text="I can't discuss PRIVATE-CLAIM."), JudgeRefusalError),
        (Reply(body=b"<html>", headers={"content-type": "text/html"}), JudgeResponseError),
        (Reply(text=lambda _: "[" * 100_000), JudgeResponseError),
        (
            Reply(
                status=400, body={}, headers=dict.fromkeys(["request-id", "x-request-id"], CLAIM)
            ),
            JudgeAPIError,
        ),
        *(
            (Reply(body=body), JudgeResponseError)
            for body in (
                b"",
                b"{}",
                b'{"content": "PRIVATE", "usage": {"input_tokens": 1}}',
                b'{"content": [], "stop_reason": "end_turn", "usage": {"input_tokens": "many"}}',
                b'{"content": [{"type": "text", "text": null}], "usage": {}}',
                b'{"choices": []}',
                b'{"choices": [{}]}',
                b'{"choices": [{"message": {"content": null, "tool_calls": []}}]}',
            )
        ),
    ],
)
async def test_whatever_answers_in_the_apis_place_is_an_error_of_ours(server, judge, reply, kind):
    server.always(reply)

    error = await failure(judge)

    assert type(error) is kind
    assert "PRIVATE" not in str(error)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"[" * 40 * 2**20, {}),
        (gzip.compress(b"[" * 400 * 2**20, 1), {"content-encoding": "gzip"}),
    ],
    ids=["plain", "packed"],
)
async def test_of_a_reply_that_is_too_long_only_the_beginning_is_read(
    server, judge_at, body, headers
):
    server.always(Reply(body=body, headers=headers | {"content-type": "application/json"}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    error = await failure(judge_at(server, max_retries=0))

    assert isinstance(error, JudgeError)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


async def test_a_good_reply_is_an_error_from_16_mb_on(server, judge_at):
    judge = judge_at(server, max_retries=0)
    server.always(Reply(edit=lambda body: body | {"more": " " * 15 * 2**20}))
    assert (await judge.verify_claims([CLAIM], CONTEXT)).verdicts
    server.always(Reply(edit=lambda body: body | {"more": " " * 16 * 2**20}))
    assert isinstance(await failure(judge), JudgeError)


async def test_a_slow_reply_is_a_timeout(server, judge_at):
    server.always(faults.slow(30))

    error = await failure(judge_at(server, timeout=0.05, max_retries=0))

    assert isinstance(error, JudgeTimeoutError)
    assert "0.05 s" in str(error)
    assert len(server.requests) == 1


async def test_the_sdk_repeats_what_can_be_repeated_and_the_answer_comes(server, judge):
    server.enqueue(faults.rate_limited(), faults.overloaded())

    result = await judge.verify_claims([CLAIM], [CLAIM])

    assert result.verdicts[0].verdict == "SUPPORTED"
    assert result.spent().requests == 1
    retries = [request.headers["x-stainless-retry-count"] for request in server.requests]
    assert retries == ["0", "1", "2"]


async def test_a_refused_connection_is_an_api_error(api):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        error = await failure(api.make(api_key="k", base_url=url, max_retries=0))

    assert type(error) is JudgeAPIError
    assert "base_url=" in str(error)


@pytest.mark.parametrize("status", [302, 308])
async def test_texts_are_not_sent_on_to_another_host(api, server, status):
    """The SDKs' own clients repeat a request, texts and all, wherever a redirect points."""
    elsewhere = {"location": server.url + "/v1/messages"}
    reply = Reply(status=status, body=b"", headers=elsewhere)
    with api.serve(respond=lambda _: reply) as redirecting:
        error = await failure(api.judge(redirecting, max_retries=0))

    assert type(error) is JudgeAPIError
    assert "redirects are not followed" in str(error)
    assert server.requests == []


async def unheard(api, context):
    """The error of a judge whose server must hear nothing."""
    heard = []

    async def hear(reader, writer):
        heard.append(await reader.read())

    server = await asyncio.start_server(hear, "127.0.0.1", 0, ssl=context)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        error = await failure(api.make(api_key="k", base_url=url, max_retries=0))
    assert type(error) is JudgeAPIError
    assert heard == []
    return str(error)


async def test_a_certificate_that_nobody_vouches_for_is_named_and_nothing_is_sent(api, tmp_path):
    message = await unheard(api, self_signed(tmp_path))
    assert "certificate that is not trusted (self-signed certificate)" in message


@pytest.mark.parametrize("kind", MISTRUSTED)
async def test_a_trusted_authoritys_certificate_must_be_valid_and_the_hosts(
    api, kind, tmp_path, monkeypatch
):
    options, reason = MISTRUSTED[kind]
    context = self_signed(tmp_path, **options)
    trusted = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
    monkeypatch.setattr(ssl, "create_default_context", lambda *_, **__: trusted)
    assert f"certificate that is not trusted ({reason}" in await unheard(api, context)


ADVICE = {
    "claude": {400: "max_tokens=", 401: "ANTHROPIC_API_KEY", 403: "may not use"}
    | {404: "model's name", 413: "too large", 500: "try again"},
    "openai": {400: "context_window=", 401: "api_key=", 404: "/v1", 422: "model's name"}
    | {500: "try again", 503: "loading"},
}


@pytest.mark.parametrize(
    ("api", "status", "advice"),
    [(api, *each) for api, advised in ADVICE.items() for each in advised.items()],
    indirect=["api"],
)
async def test_a_status_comes_with_advice_and_the_request_id_but_not_its_text(
    api, server, key, status, advice
):
    server.always(api.error(status, f"PRIVATE {CLAIM} {key}"))

    error = await failure(api.judge(server, max_retries=0))

    assert type(error) is JudgeAPIError
    for part in (str(status), advice, "(request req_"):
        assert part in str(error)
    assert "PRIVATE" not in str(error)
    assert key not in str(error)


@pytest.mark.parametrize(
    ("api", "settings", "parts"),
    [
        ("claude", {"max_tokens": 77}, ["max_tokens=77"]),
        ("openai", {}, ["max_tokens=", "context_window="]),
    ],
    indirect=["api"],
)
async def test_a_reply_cut_off_says_what_to_raise(server, judge_at, settings, parts):
    server.always(faults.truncated())

    error = await failure(judge_at(server, **settings))

    assert all(part in str(error) for part in parts)


@pytest.mark.parametrize("api", ["openai"], indirect=True)
@pytest.mark.parametrize(
    ("content", "finish"),
    [
        (None, "content_filter"),
        ("half a reply", "content_filter"),
        ("I'm sorry, but I can't help with that.", "stop"),
    ],
)
async def test_a_content_filter_or_a_refusal_in_words_is_a_refusal(server, judge, content, finish):
    def edit(body):
        body["choices"][0] |= {"finish_reason": finish, "message": {"content": content}}
        return body

    server.always(Reply(edit=edit))

    error = await failure(judge)

    assert type(error) is JudgeRefusalError
    assert ("content filter" in str(error)) is (finish == "content_filter")


@pytest.mark.parametrize(
    ("raised", "expected"), [(TimeoutError, JudgeTimeoutError), (ValueError, JudgeAPIError)]
)
async def test_what_an_application_s_client_raises_is_not_carried_along(raised, expected):
    async def complete(system, user):
        raise raised(user)

    with pytest.raises(expected) as caught:
        await ChatModelJudge(complete, model="own").verify_claim(CLAIM, CONTEXT)
    assert "PRIVATE" not in "".join(traceback.format_exception(caught.value, chain=True))
    assert caught.value.__context__ is None

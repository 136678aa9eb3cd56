"""The loopback server behaves as the API does, for any client."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request

import anthropic
import pytest

from ragaliq.errors import JudgeAPIError, JudgeRefusalError
from ragaliq.testing import MessagesServer, PlainScriptedJudge, Reply, ScriptedJudge, faults

HELLO = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hello"}]}


def post(server: MessagesServer, body: object, path: str = "/v1/messages", key: str = "k"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, {"x-api-key": key} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_it_answers_a_plain_request_with_a_message(server):
    status, body = post(server, HELLO)

    assert status == 200
    assert body["type"] == "message"
    assert body["content"] == [{"type": "text", "text": "OK."}]
    assert body["usage"]["input_tokens"] > 0


def test_the_sdks_synchronous_client_works_too(server):
    with anthropic.Anthropic(api_key="k", base_url=server.url) as client:
        assert client.messages.create(**HELLO).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"model": ""}, 400),
        ({"max_tokens": 0}, 400),
        ({"messages": []}, 400),
        ({"messages": [{"role": "user", "content": "  "}]}, 400),
        ({"temperature": 0}, 400),
        ({"stream": True}, 400),
        ({"output_config": {"format": {"schema": {"type": "object", "properties": {}}}}}, 400),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
                        ]
                        * 5,
                    }
                ]
            },
            400,
        ),
    ],
)
def test_it_refuses_what_the_api_refuses(server, change, status):
    code, body = post(server, HELLO | change)

    assert code == status
    assert body["error"]["type"] == "invalid_request_error"


def test_it_refuses_requests_without_a_key_or_to_other_paths_or_without_json(server):
    assert post(server, HELLO, key="")[0] == 401
    assert post(server, HELLO, path="/v1/complete")[0] == 404
    assert post(server, b"{")[0] == 400
    assert post(server, b"[]")[0] == 400


def test_a_schema_it_does_not_know_is_told(server):
    schema = {"type": "object", "properties": {"x": {}}, "additionalProperties": False}

    status, body = post(server, HELLO | {"output_config": {"format": {"schema": schema}}})

    assert status == 400
    assert "respond=" in body["error"]["message"]


def test_requests_are_recorded_in_order(server):
    for text in ("one", "two"):
        post(server, HELLO | {"messages": [{"role": "user", "content": text}], "system": "S"})

    assert [request.text for request in server.requests] == ["one", "two"]
    assert server.requests[0].system == "S"
    assert server.requests[0].headers["x-api-key"] == "k"


def test_queued_replies_come_first_then_the_standing_one_then_the_usual(server):
    server.enqueue(faults.overloaded())
    server.always(faults.rate_limited())

    assert [post(server, HELLO)[0] for _ in range(3)] == [529, 429, 429]
    server.always(None)
    assert post(server, HELLO)[0] == 200


def test_retry_after_is_sent_in_both_units(server):
    server.enqueue(faults.rate_limited(retry_after=2))
    request = urllib.request.Request(server.url + "/v1/messages", b"{}", {"x-api-key": "k"})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=5)

    with caught.value as response:
        assert response.headers["retry-after"] == "2"
        assert response.headers["retry-after-ms"] == "2000"


def test_a_responder_answers_in_the_judges_place():
    def respond(request):
        return Reply(body={"echo": request.text}) if request.text == "Hello" else Reply()

    with MessagesServer(respond=respond) as server:
        assert post(server, HELLO)[1] == {"echo": "Hello"}
        other = HELLO | {"messages": [{"role": "user", "content": "Else"}]}
        assert post(server, other)[1]["type"] == "message"


async def test_a_plain_judge_can_stand_behind_the_server(judge_at):
    behind = PlainScriptedJudge(claims=["a", "b"], verdicts={"a": "CONTRADICTED"}, relevance=0.3)
    with MessagesServer(behind) as server:
        judge = judge_at(server)
        found = await judge.extract_statements("q", "r")
        checked = await judge.verify_claims(found.claims, ["x"])
        graded = await judge.grade_statements("q", "r", ["x"])
        scored = await judge.evaluate_relevance("q", "r")
        await judge.aclose()

    assert found.claims == ["a", "b"]
    assert [item.verdict for item in checked.verdicts] == ["CONTRADICTED", "NOT_ENOUGH_INFO"]
    assert [item.verdict for item in graded.verdicts] == ["CONTRADICTED", "NOT_ENOUGH_INFO"]
    assert scored.score == 0.3


async def test_the_judges_own_failures_become_the_apis(judge_at):
    behind = ScriptedJudge(
        failures={
            "evaluate_relevance": JudgeRefusalError("no"),
            "extract_statements": JudgeAPIError("down"),
        }
    )
    with MessagesServer(behind) as server:
        judge = judge_at(server, max_retries=0)
        with pytest.raises(JudgeRefusalError):
            await judge.evaluate_relevance("q", "r")
        with pytest.raises(JudgeAPIError):
            await judge.extract_statements("q", "r")
        await judge.aclose()


@pytest.mark.timeout(30)  # the reply is a minute away
async def test_closing_breaks_off_what_is_under_way(judge_at):
    arrived = threading.Event()

    def respond(_):
        arrived.set()
        return faults.slow(60)

    server = MessagesServer(respond=respond).start()
    judge = judge_at(server, max_retries=0)
    call = asyncio.create_task(judge.evaluate_relevance("q", "r"))
    await asyncio.to_thread(arrived.wait, 5)
    await asyncio.to_thread(server.close)

    with pytest.raises(JudgeAPIError):
        await call
    await judge.aclose()


def test_a_server_that_does_not_run_has_no_address():
    server = MessagesServer()
    with pytest.raises(RuntimeError, match="with"):
        server.url  # noqa: B018
    server.close()

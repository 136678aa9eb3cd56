"""The loopback server behaves as chat-completions servers do, for any client."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import openai
import pytest

from ragaliq.errors import JudgeAPIError, JudgeRefusalError
from ragaliq.judges.wire import ScoreReply, form_of, schema_of
from ragaliq.testing import ChatCompletionsServer, PlainScriptedJudge, Reply, ScriptedJudge, faults

HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
TEXTS = "<question>\nsame words\n</question>\n<answer>\nsame words\n</answer>\n"


def post(server: ChatCompletionsServer, body: object, path: str = "/chat/completions"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        request = urllib.request.Request(server.url + path, data)
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def asking(text: str, **settings) -> dict:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **settings}


def test_it_answers_a_plain_request_with_a_completion(server):
    status, body = post(server, HELLO)

    assert status == 200
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"]["content"] == "OK."
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"]["total_tokens"] > 0


def test_the_sdks_synchronous_client_works_too(server):
    with openai.OpenAI(api_key="k", base_url=server.url) as client:
        reply = client.chat.completions.create(**HELLO)

    assert reply.choices[0].message.content == "OK."


def test_a_request_in_words_is_answered_like_one_with_a_schema(server):
    named = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema_of(ScoreReply)}}
    bodies = [
        asking(TEXTS + form_of(ScoreReply)),
        asking(TEXTS, response_format=named),
        asking(f"{TEXTS} JSON", response_format={"type": "json_object"} | named["json_schema"]),
    ]

    for body in bodies:
        text = post(server, body)[1]["choices"][0]["message"]["content"]
        assert json.loads(text)["score"] == 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"model": ""},
        {"messages": []},
        {"messages": [{"role": "user", "content": "  "}]},
        {"messages": [{"role": "nobody", "content": "a"}]},
        {"stream": True},
        {"response_format": {"type": "xml"}},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "s",
                    "strict": True,
                    "schema": {"type": "object", "properties": {}},
                },
            }
        },
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "s", "schema": {"properties": {"unknown": {}}}},
            }
        },
    ],
)
def test_it_refuses_what_such_servers_refuse(server, change):
    status, body = post(server, HELLO | change)

    assert status == 400
    assert body["error"]["type"] == "invalid_request_error"


def test_it_refuses_other_paths_and_what_is_no_json(server):
    assert post(server, HELLO, path="/completions")[0] == 404
    assert post(server, b"{")[0] == 400
    assert post(server, b"[]")[0] == 400


def test_requests_are_recorded_in_order(server):
    for text in ("one", "two"):
        post(server, asking(text))
    parts = [{"type": "text", "text": "thr"}, {"type": "text", "text": "ee"}]
    system = {"role": "system", "content": "S"}
    post(server, asking("") | {"messages": [system, {"role": "user", "content": parts}]})

    assert [request.text for request in server.requests] == ["one", "two", "three"]
    assert server.requests[2].system == "S"


def test_queued_replies_come_first_then_the_standing_one_then_the_usual(server):
    server.enqueue(faults.overloaded())
    server.always(faults.rate_limited())

    assert [post(server, HELLO)[0] for _ in range(3)] == [529, 429, 429]
    server.always(None)
    assert post(server, HELLO)[0] == 200


def test_a_planned_failure_speaks_the_protocol(server):
    server.always(faults.rate_limited())

    status, body = post(server, HELLO)

    assert status == 429
    assert body["error"]["type"] == "rate_limit_error"


def test_a_responder_answers_in_the_judges_place():
    def respond(request):
        return Reply(text=lambda usual: f"{request.text}? {usual}")

    with ChatCompletionsServer(respond=respond) as server:
        assert post(server, HELLO)[1]["choices"][0]["message"]["content"] == "Hello? OK."


def test_a_plain_judge_and_its_failures_can_stand_behind_it():
    with ChatCompletionsServer(PlainScriptedJudge(relevance=0.3)) as server:
        text = post(server, asking(TEXTS + form_of(ScoreReply)))[1]["choices"][0]["message"]
        assert json.loads(text["content"])["score"] == 0.3
    for failure, status in ((JudgeRefusalError("no"), 200), (JudgeAPIError("down"), 500)):
        judge = ScriptedJudge(failures={"evaluate_relevance": failure})
        with ChatCompletionsServer(judge) as server:
            code, body = post(server, asking(TEXTS + form_of(ScoreReply)))
            assert code == status
            if status == 200:
                assert body["choices"][0]["message"]["refusal"]


def test_a_server_that_does_not_run_has_no_address():
    server = ChatCompletionsServer()
    with pytest.raises(RuntimeError, match="with"):
        server.url  # noqa: B018
    server.close()

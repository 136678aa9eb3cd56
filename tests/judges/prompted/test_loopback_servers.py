"""The loopback servers behave as the APIs do, for any client."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request

import pytest

from loopback import faults
from ragaliq.errors import JudgeAPIError, JudgeRefusalError
from ragaliq.judges.wire import ScoreReply, form_of, schema_of
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge

PATHS = {"claude": "/v1/messages", "openai": "/chat/completions"}
HELLO = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hello"}]}
TEXTS = "<question>\nsame words\n</question>\n<answer>\nsame words\n</answer>\n"
CACHED = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
OPEN = {"type": "object", "properties": {}}
UNKNOWN = {"type": "object", "properties": {"x": {}}, "additionalProperties": False}

openai_only = pytest.mark.parametrize("api", ["openai"], indirect=True)


@pytest.fixture
def post(api, server):
    """Status, body and headers of the reply to a request of any client."""

    def send(body: object, *, path: str = PATHS[api.name], key: str = "k", to=server):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(to.url + path, data, {"x-api-key": key} if key else {})
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return response.status, json.load(response), response.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error), error.headers

    return send


def said(body) -> str:
    if "choices" in body:
        return body["choices"][0]["message"]["content"]
    return body["content"][0]["text"]


def test_it_answers_a_plain_request_as_the_api_does(api, post):
    status, body, _ = post(HELLO)

    assert status == 200
    assert said(body) == "OK."
    counted = "input_tokens" if api.name == "claude" else "prompt_tokens"
    assert body["usage"][counted] > 0
    assert body.get("type", body.get("object")) in ("message", "chat.completion")


@pytest.mark.parametrize(
    ("api", "change"),
    [
        *(
            (api, change)
            for api in PATHS
            for change in (
                {"messages": []},
                {"messages": [{"role": "user", "content": "  "}]},
                {"stream": True},
            )
        ),
        ("claude", {"temperature": 0}),
        ("claude", {"output_config": {"format": {"schema": OPEN}}}),
        ("claude", {"output_config": {"format": {"schema": UNKNOWN}}}),
        ("claude", {"messages": [{"role": "user", "content": [CACHED] * 5}]}),
        ("openai", {"messages": [{"role": "nobody", "content": "a"}]}),
        *(
            ("openai", {"response_format": form})
            for form in (
                {"type": "xml"},
                {"type": "json_schema"},
                {
                    "type": "json_schema",
                    "json_schema": {"name": "s", "strict": True, "schema": OPEN},
                },
                {"type": "json_schema", "json_schema": {"name": "s", "schema": UNKNOWN}},
            )
        ),
    ],
    indirect=["api"],
)
def test_it_refuses_what_the_api_refuses(post, change):
    status, body, _ = post(HELLO | change)

    assert status == 400
    assert body["error"]["type"] == "invalid_request_error"
    if "'x'" in str(change):
        assert "respond=" in body["error"]["message"]


def test_it_refuses_other_paths_what_is_not_json_and_claudes_without_a_key(api, post):
    assert post(HELLO, path="/v1/complete")[0] == 404
    assert post(b"{")[0] == post(b"[]")[0] == 400
    assert post(HELLO, key="")[0] == (401 if api.name == "claude" else 200)


async def test_a_plain_judge_can_stand_behind_the_server(api):
    behind = PlainScriptedJudge(claims=["a", "b"], verdicts={"a": "CONTRADICTED"}, relevance=0.3)
    with api.serve(behind) as server:
        judge = api.judge(server)
        found = await judge.extract_statements("q", "r")
        checked = await judge.verify_claims(found.claims, ["x"])
        graded = await judge.grade_statements("q", "r", ["x"])
        scored = await judge.evaluate_relevance("q", "r")
        await judge.aclose()

    assert found.claims == ["a", "b"]
    for result in (checked, graded):
        assert [item.verdict for item in result.verdicts] == ["CONTRADICTED", "NOT_ENOUGH_INFO"]
    assert scored.score == 0.3


async def test_the_judges_own_failures_become_the_apis(api):
    failures = {
        "evaluate_relevance": JudgeRefusalError("no"),
        "extract_statements": JudgeAPIError("down"),
    }
    with api.serve(ScriptedJudge(failures=failures)) as server:
        judge = api.judge(server, max_retries=0)
        with pytest.raises(JudgeRefusalError):
            await judge.evaluate_relevance("q", "r")
        with pytest.raises(JudgeAPIError):
            await judge.extract_statements("q", "r")
        await judge.aclose()


@pytest.mark.timeout(30)  # the reply is a minute away
async def test_closing_breaks_off_what_is_under_way(api):
    arrived = threading.Event()

    def respond(_):
        arrived.set()
        return faults.slow(60)

    server = api.serve(respond=respond).start()
    judge = api.judge(server, max_retries=0)
    call = asyncio.create_task(judge.evaluate_relevance("q", "r"))
    await asyncio.to_thread(arrived.wait, 5)
    await asyncio.to_thread(server.close)

    with pytest.raises(JudgeAPIError):
        await call
    await judge.aclose()


@openai_only
def test_a_request_in_words_is_answered_like_one_with_a_schema(post):
    def words(text):
        return {"messages": [{"role": "user", "content": text}]}

    named = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema_of(ScoreReply)}}
    plain = {"type": "json_object"} | named["json_schema"]
    for body in (
        HELLO | words(TEXTS + form_of(ScoreReply)),
        HELLO | words(TEXTS) | {"response_format": named},
        HELLO | words(f"{TEXTS} JSON") | {"response_format": plain},
    ):
        assert json.loads(said(post(body)[1]))["score"] == 1.0

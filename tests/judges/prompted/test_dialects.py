"""The judge finds out what a server takes, once, and never asks more than it has to."""

import asyncio

import pytest

from loopback import ChatCompletionsServer, Reply
from loopback.chat import chat_error
from ragaliq.errors import JudgeAPIError

openai_only = pytest.mark.parametrize("api", ["openai"], indirect=True)

LLAMA_CPP_PYTHON = (
    "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
    "'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}"
)


def kind(request) -> str:
    name = request.format.get("type", "text")
    return f"{name}+schema" if name == "json_object" and request.schema else name


def only(*kinds: str, status: int = 400, complaint: str = "Unsupported response_format."):
    def respond(request):
        return Reply() if kind(request) in kinds else chat_error(status, complaint)

    return respond


async def asked(server, judge, times: int = 2) -> list[str]:
    for _ in range(times):
        assert (await judge.evaluate_relevance("same words", "same words")).score == 1.0
    await judge.aclose()
    return [kind(request) for request in server.requests]


@pytest.mark.parametrize(
    ("taken", "kinds"),
    [
        ("json_schema", ["json_schema"] * 2),
        ("json_object+schema", ["json_schema", *["json_object+schema"] * 2]),
        ("json_object", ["json_schema", "json_object+schema", *["json_object"] * 2]),
        ("text", ["json_schema", "json_object+schema", "json_object", *["text"] * 2]),
    ],
)
@pytest.mark.parametrize("complaint", ["Unsupported response_format.", ""])
@openai_only
async def test_the_strictest_format_a_server_takes_is_found_once(judge_at, taken, kinds, complaint):
    with ChatCompletionsServer(respond=only(taken, complaint=complaint)) as server:
        assert await asked(server, judge_at(server)) == kinds


@openai_only
async def test_a_server_that_calls_its_ignorance_its_own_error_is_understood(judge_at):
    respond = only("json_object+schema", status=500, complaint=LLAMA_CPP_PYTHON)
    with ChatCompletionsServer(respond=respond) as server:
        judge = judge_at(server, max_retries=0)
        assert await asked(server, judge) == ["json_schema", *["json_object+schema"] * 2]


@pytest.mark.parametrize(
    ("refuses", "complaint"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0.0"),
        ("max_tokens", "Use 'max_completion_tokens' instead of 'max_tokens'."),
        ("system", "System role not supported"),
        ("system", "roles must alternate user/assistant"),
    ],
)
@openai_only
async def test_what_a_server_refuses_by_name_is_asked_without_from_then_on(
    judge_at, refuses, complaint
):
    def respond(request):
        is_refused = request.system if refuses == "system" else refuses in request.body
        return chat_error(400, complaint) if is_refused else Reply()

    with ChatCompletionsServer(respond=respond) as server:
        assert await asked(server, judge_at(server, max_tokens=500)) == ["json_schema"] * 3
        last = server.requests[-1]
    assert last.body.get("temperature") == (None if refuses == "temperature" else 0.0)
    limit = "max_completion_tokens" if refuses == "max_tokens" else "max_tokens"
    assert last.body[limit] == 500
    if refuses == "system":
        ((role, text),) = last.messages
        assert role == "user"
        assert text.startswith("You assess answers")
        assert "<question>\nsame words\n</question>" in text


@openai_only
async def test_a_request_that_is_wrong_for_another_reason_is_tried_a_few_times_only_once(judge_at):
    with ChatCompletionsServer() as server:
        server.always(chat_error(400, "The prompt is too long."))
        judge = judge_at(server)
        for requests in (4, 5, 6):
            with pytest.raises(JudgeAPIError, match="400"):
                await judge.evaluate_relevance("a", "b")
            assert len(server.requests) == requests
        server.always(None)
        assert (await judge.evaluate_relevance("a", "b")).score == 0.0
        await judge.aclose()
        assert kind(server.requests[-1]) == "json_schema"


@pytest.mark.parametrize(
    ("complaint", "requests"),
    [("Too long.", (2, 3, 4)), ("Too long: 'a temperature in a json_schema'", (6, 7, 8))],
    ids=["an unspecific refusal is final", "misleading words cost a few requests once"],
)
@openai_only
async def test_after_a_request_was_accepted_a_refusal_costs_few(judge_at, complaint, requests):
    with ChatCompletionsServer() as server:
        judge = judge_at(server)
        await judge.evaluate_relevance("a", "b")
        server.always(chat_error(400, complaint))
        for count in requests:
            with pytest.raises(JudgeAPIError):
                await judge.evaluate_relevance("a", "b")
            assert len(server.requests) == count
        await judge.aclose()


@openai_only
async def test_a_misfortune_at_first_does_not_keep_the_judge_from_finding_its_way(judge_at):
    with ChatCompletionsServer(respond=only("text")) as server:
        server.enqueue(*[chat_error(400, "The prompt is too long.")] * 4)
        judge = judge_at(server)
        with pytest.raises(JudgeAPIError):
            await judge.evaluate_relevance("a", "b")
        await asked(server, judge)
        assert kind(server.requests[-1]) == "text"


@openai_only
async def test_first_requests_at_once_all_find_their_way(judge_at):
    with ChatCompletionsServer(respond=only("text")) as server:
        judge = judge_at(server)
        results = await asyncio.gather(*(judge.evaluate_relevance("a a", "a a") for _ in range(9)))
        await judge.aclose()

    assert len(results) == 9


@openai_only
async def test_what_the_server_takes_is_logged_without_its_words(judge_at, caplog):
    caplog.set_level("INFO", "ragaliq")
    with ChatCompletionsServer(respond=only("text", complaint="PRIVATE json_schema")) as server:
        await asked(server, judge_at(server))

    (record,) = caplog.records
    assert "json_schema" in record.getMessage()
    assert "PRIVATE" not in record.getMessage()


@openai_only
async def test_what_was_not_sent_cannot_be_conceded(judge_at):
    complaint = "temperature max_completion_tokens response_format system role"
    with ChatCompletionsServer() as server:
        server.always(chat_error(400, complaint))
        judge = judge_at(server, temperature=None)
        with pytest.raises(JudgeAPIError):
            await judge.evaluate_relevance("a", "b")
        # Three simpler formats and a request without a system role; no temperature, no limit.
        assert len(server.requests) == 5
        await judge.aclose()

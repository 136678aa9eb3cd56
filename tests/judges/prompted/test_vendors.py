"""What vendors' servers really send becomes a status, tokens, a cost and a message."""

import asyncio

import pytest

from loopback import ChatCompletionsServer, Reply
from loopback.vendors import DIALECTS, REPLIES, chat, failed, kind_of
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeAPIError, JudgeBillingError, JudgeError

openai_only = pytest.mark.parametrize("api", ["openai"], indirect=True)
NOW = {"retry-after-ms": "1"}  # so that testing the SDK's retries takes no time


@pytest.mark.parametrize(
    ("api", "row"),
    [pytest.param(row.api, row, id=f"{row.page.split('/')[2]} {row.what}") for row in REPLIES],
    indirect=["api"],
)
async def test_a_recorded_reply_has_its_status_tokens_and_message(api, row):
    reply = Reply(row.reply.status, row.reply.body, headers={**NOW, **row.reply.headers})
    with api.serve(respond=lambda _: reply) as server:
        judge = api.judge(server, max_retries=1)
        failure = None
        try:
            usage = (await judge.evaluate_relevance("Why?", "So.")).spent()
        except JudgeError as error:
            failure, usage = error, error.usage
        await judge.aclose()

    assert (type(failure).__name__ if failure else "scored") == row.outcome
    for part in row.says:
        assert part in str(failure)
    assert len(server.requests) == row.requests
    usage = usage or JudgeUsage()
    if row.usage is None:
        assert usage.input_tokens == usage.output_tokens == 0
        assert usage.cost_usd is None or not usage.requests
    else:
        read = (usage.input_tokens, usage.output_tokens)
        assert (*read, usage.cache_read_tokens, usage.cache_write_tokens) == row.usage
    if row.cost is not None:
        assert usage.cost_usd == pytest.approx(row.cost)


@pytest.mark.parametrize("name", DIALECTS)
@openai_only
async def test_what_a_server_takes_is_found_with_the_first_reply_and_kept(judge_at, name):
    dialect = DIALECTS[name]

    def respond(request):
        return dialect.reply if dialect.refuses(request) else Reply()

    with ChatCompletionsServer(respond=respond) as server:
        judge = judge_at(server, **dialect.settings)
        for _ in range(3):
            assert (await judge.evaluate_relevance("same", "same")).score == 1.0
        await judge.aclose()

    taken = server.requests[-1]
    assert kind_of(taken) == dialect.format
    assert not set(dialect.lacks) & set(taken.body)
    assert [kind_of(request) for request in server.requests[-3:]] == [dialect.format] * 3
    assert len(server.requests) <= 3 + 2


@openai_only
async def test_one_case_never_changes_how_the_next_is_asked(judge_at):
    complaint = failed(400, "Cannot read: 'the temperature in a json_schema, system role'")
    with ChatCompletionsServer() as server:
        judge = judge_at(server)
        await judge.evaluate_relevance("a", "b")
        first = server.requests[0]
        server.always(complaint)
        with pytest.raises(JudgeAPIError):
            await judge.evaluate_relevance("a", "b")
        assert len(server.requests) == 2
        server.always(None)
        await judge.evaluate_relevance("a", "b")
        await judge.aclose()
    assert server.requests[-1].body == first.body


@openai_only
async def test_a_first_request_that_is_wrong_for_another_reason_is_sent_once(judge_at):
    with ChatCompletionsServer() as server:
        server.always(failed(400, "The prompt is odd."))
        judge = judge_at(server)
        with pytest.raises(JudgeAPIError, match="reply_format="):
            await judge.evaluate_relevance("a", "b")
        assert len(server.requests) == 1
        server.always(None)
        assert (await judge.evaluate_relevance("a", "b")).score == 0.0
        await judge.aclose()
    assert kind_of(server.requests[-1]) == "json_schema"


@openai_only
async def test_a_form_that_is_given_is_not_looked_for(judge_at):
    refusal = failed(400, "Unsupported response_format.")
    with ChatCompletionsServer(respond=lambda _: refusal) as server:
        judge = judge_at(server, reply_format="json_object")
        with pytest.raises(JudgeAPIError, match="reply_format="):
            await judge.evaluate_relevance("a", "b")
        await judge.aclose()
    assert [kind_of(request) for request in server.requests] == ["json_object"]


@openai_only
async def test_first_requests_at_once_all_find_their_way(judge_at):
    refuses = DIALECTS["a server without any form"]

    def respond(request):
        return refuses.reply if refuses.refuses(request) else Reply()

    with ChatCompletionsServer(respond=respond) as server:
        judge = judge_at(server)
        results = await asyncio.gather(*(judge.evaluate_relevance("a a", "a a") for _ in range(9)))
        await judge.aclose()

    assert len(results) == 9


@openai_only
async def test_what_the_server_takes_is_logged_without_its_words(judge_at, caplog):
    caplog.set_level("INFO", "ragaliq")

    def respond(request):
        return Reply() if kind_of(request) == "text" else failed(400, "PRIVATE json_schema")

    with ChatCompletionsServer(respond=respond) as server:
        judge = judge_at(server)
        await judge.evaluate_relevance("a", "b")
        await judge.aclose()

    (record,) = caplog.records
    assert "json_schema" in record.getMessage()
    assert "PRIVATE" not in record.getMessage()


@openai_only
async def test_no_credit_is_said_at_once_while_a_rate_limit_is_waited_for(judge_at):
    quota = failed(429, "...", code="insufficient_quota")
    with ChatCompletionsServer() as server:
        judge = judge_at(server, max_retries=5)
        server.enqueue(quota)
        with pytest.raises(JudgeBillingError):
            await judge.evaluate_relevance("a", "b")
        assert len(server.requests) == 1
        limit = failed(429, "...", code="rate_limit_exceeded")
        server.enqueue(Reply(limit.status, limit.body, headers=NOW), chat())
        assert (await judge.evaluate_relevance("a", "b")).score == 0.5
        await judge.aclose()

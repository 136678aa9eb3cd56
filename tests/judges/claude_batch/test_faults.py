"""Every way in which a batch goes wrong is an error of its own, or passes; never a score."""

from __future__ import annotations

import asyncio

import pytest

from ragaliq import JudgeAPIError, JudgeResponseError, JudgeTimeoutError, evaluate
from ragaliq.errors import JudgeRefusalError
from ragaliq.testing import BatchesServer, Reply, faults
from ragaliq.testing.batches import errored, expired


async def ask(judge, number=1):
    return await judge.evaluate_relevance(f"Where is number {number}?", f"Number {number} is here.")


async def ask_all(judge, count):
    return await asyncio.gather(*(ask(judge, number) for number in range(count)))


@pytest.mark.parametrize(
    ("result", "kind", "words"),
    [
        (errored("invalid_request_error"), JudgeAPIError, "invalid_request_error; check"),
        (errored("api_error"), JudgeAPIError, "api_error; it failed several times"),
        (errored("something_new"), JudgeAPIError, "unknown_error"),
        (expired(), JudgeTimeoutError, "expired before the request was processed"),
        ({"type": "canceled"}, JudgeAPIError, "canceled"),
        ({"type": "something_new"}, JudgeResponseError, "malformed"),
        ({"type": "succeeded", "message": None}, JudgeResponseError, "malformed"),
        ({"type": "succeeded", "message": {"id": 3}}, JudgeResponseError, "no message"),
    ],
)
async def test_a_request_that_failed_says_how_and_is_forgotten(judge_at, rows, result, kind, words):
    with BatchesServer(result=lambda _: result) as server, pytest.raises(kind, match=words):
        await ask(judge_at(server))
    assert rows() == []


async def test_a_failure_that_may_pass_is_tried_again_in_another_batch(judge_at):
    planned = iter([errored("overloaded_error"), errored("api_error")])
    with BatchesServer(result=lambda _: next(planned, None)) as server:
        assert (await ask(judge_at(server))).score > 0
        assert [len(batch.requests) for batch in server.batches] == [1, 1, 1]


async def test_one_failed_request_takes_no_other_with_it(judge_at):
    def result(request):
        return errored() if "number 2?" in request.text else None

    with BatchesServer(result=result) as server:
        judge = judge_at(server)
        answers = await asyncio.gather(
            *(ask(judge, number) for number in range(5)), return_exceptions=True
        )
    assert [type(answer).__name__ for answer in answers] == [
        "JudgeAPIError" if number == 2 else "JudgeResult" for number in range(5)
    ]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [(faults.refusal(), JudgeRefusalError), (faults.truncated(), JudgeResponseError)],
)
async def test_a_reply_that_is_none_is_the_error_it_is_without_batches(judge_at, reply, kind):
    with BatchesServer(respond=lambda _: reply) as server, pytest.raises(kind) as caught:
        await ask(judge_at(server))
    assert caught.value.usage.cost_usd > 0


@pytest.mark.parametrize(
    ("status", "words"),
    [(400, "check the model"), (401, "API key is not valid"), (403, "may not use"), (404, "base")],
)
async def test_a_batch_that_is_refused_fails_its_requests(server, judge, rows, status, words):
    server.plan("create", Reply(status=status))
    with pytest.raises(JudgeAPIError, match=words):
        await ask(judge)

    assert rows() == []
    assert (await ask(judge)).score > 0  # and nothing else


@pytest.mark.parametrize("status", [429, 529])
async def test_a_batch_that_was_not_taken_is_sent_again(server, judge, status):
    server.plan("create", Reply(status=status), Reply(status=status))

    assert (await ask(judge)).score > 0
    assert server.calls.count("create") == 3
    assert "list" not in server.calls  # it is known that it was not made


async def test_a_batch_that_is_too_large_is_sent_in_parts(server, judge):
    server.plan("create", Reply(status=413))
    await ask_all(judge, 8)

    assert sum(len(batch.requests) for batch in server.batches) == 8
    assert all(len(batch.requests) < 8 for batch in server.batches)


async def test_a_request_that_is_too_large_alone_fails(server, judge):
    server.plan("create", Reply(status=413))
    with pytest.raises(JudgeAPIError, match="too large"):
        await ask(judge)


LOST = {
    "the answer was cut off": faults.cut_off(),
    "the server failed": faults.server_error(),
    "something else answered": faults.not_json(),
}


@pytest.mark.parametrize("reply", LOST.values(), ids=LOST.keys())
async def test_a_batch_nobody_knows_of_is_looked_for_and_paid_once(server, judge, reply):
    server.plan("create", reply)

    assert len(await ask_all(judge, 4)) == 4
    assert "list" in server.calls
    assert len(server.paid) == len(set(server.paid)) == 4
    # Only where it was not made it was sent again.
    assert server.calls.count("create") == (2 if reply.status == 500 else 1)


async def test_a_time_limit_on_sending_pays_once(server, judge_at):
    server.plan("create", faults.slow(1.0))
    judge = judge_at(server, timeout=0.1)

    assert len(await ask_all(judge, 3)) == 3
    assert len(server.paid) == len(set(server.paid)) == 3
    assert server.calls.count("create") == 1


async def test_a_batch_of_somebody_else_is_not_taken_for_ours(server, judge_at, tmp_path):
    other = judge_at(server, store=tmp_path / "other.db")
    await ask_all(other, 4)
    server.plan("create", faults.server_error())

    answers = await asyncio.gather(*(ask(judge_at(server), 10 + n) for n in range(4)))
    assert len(answers) == 4
    assert len(server.paid) == len(set(server.paid)) == 8


@pytest.mark.parametrize("endpoint", ["retrieve", "results"])
@pytest.mark.parametrize(
    "reply",
    [faults.server_error(), faults.rate_limited(), faults.cut_off()],
    ids=["500", "429", "cut"],
)
async def test_asking_after_a_batch_goes_on_after_a_failure(server, judge, endpoint, reply):
    server.plan(endpoint, reply, reply)

    assert len(await ask_all(judge, 3)) == 3
    assert server.calls.count("create") == 1


async def test_results_cut_off_in_the_middle_are_kept_and_the_rest_is_fetched(
    server, judge, rows, until
):
    server.holds = True
    asking = asyncio.create_task(ask_all(judge, 6))
    await until(lambda: server.batches)
    server.end()
    half = len(server.batches[0].lines()) // 2
    gone = Reply(status=500)
    server.plan("results", faults.cut_off(after=half), *[gone] * 3)
    await until(lambda: server.calls.count("results") >= 2)

    assert rows().count("sent") in (3, 4)  # those before the cut are there
    assert len(await asking) == 6
    assert len(server.paid) == 6


async def test_lines_that_are_no_results_hide_no_other(server, judge, until):
    server.holds = True
    asking = asyncio.gather(*(ask(judge, n) for n in range(3)), return_exceptions=True)
    await until(lambda: server.batches)
    server.end()
    good = server.batches[0].lines().splitlines()
    name = good[2].split(b'"custom_id": ')[1].split(b",")[0]
    bad = b'{"custom_id": %s, "result": 7}' % name
    body = b"\n".join([b"{{{", good[0], b"\xff\xfe", b"[]", good[1], b"", bad])
    server.plan("results", Reply(body=body))

    answers = await asking
    failed = [answer for answer in answers if isinstance(answer, Exception)]
    assert [type(error).__name__ for error in failed] == ["JudgeResponseError"]


async def test_results_that_never_hold_a_request_are_given_up(server, judge):
    server.plan("results", *[Reply(body=b'{"custom_id": "x", "result": {}}\n')] * 5)
    with pytest.raises(JudgeResponseError, match="hold none"):
        await ask(judge)


async def test_a_batch_the_api_does_not_know_is_an_error_of_its_own(server, judge, rows, until):
    server.holds = True
    asking = asyncio.create_task(ask(judge))
    await until(lambda: server.batches)
    server.forget(server.batches[0].batch_id)

    with pytest.raises(JudgeAPIError, match="does not know the batch"):
        await asking
    assert rows() == []


async def test_a_key_that_is_not_valid_any_more_tells_those_who_wait_and_loses_nothing(
    server, judge, rows
):
    server.plan("retrieve", Reply(status=401))
    with pytest.raises(JudgeAPIError, match="API key is not valid"):
        await ask(judge)

    assert rows() == ["sent"]
    assert (await ask(judge)).score > 0
    assert len(server.paid) == 1


async def test_a_batch_that_never_ends_is_a_timeout_and_stays_where_it_is(server, judge_at, rows):
    server.holds = True
    with pytest.raises(JudgeTimeoutError, match="asked again it is not sent again"):
        await ask(judge_at(server, max_age=0.2))
    assert rows() == ["sent"]

    server.holds = False
    assert (await ask(judge_at(server))).score > 0
    assert server.calls.count("create") == 1


async def test_what_is_under_way_can_be_canceled(server, judge, until, rows):
    server.holds = True
    asking = asyncio.gather(*(ask(judge, n) for n in range(3)), return_exceptions=True)
    await until(lambda: server.batches)
    await until(lambda: rows() == ["sent"] * 3)

    assert await judge.cancel_pending() == 3
    answers = await asking
    assert all("canceled" in str(answer) for answer in answers)
    assert server.paid == []


async def test_one_who_stops_waiting_stops_no_other(server, judge, rows, until):
    server.holds = True
    impatient, patient = asyncio.create_task(ask(judge, 1)), asyncio.create_task(ask(judge, 2))
    await until(lambda: server.batches)
    impatient.cancel()
    server.holds = False

    assert (await patient).score > 0
    # What was sent is paid for: it is there for the next one who asks.
    assert (await ask(judge, 1)).score > 0
    assert len(server.paid) == len(set(server.paid)) == 2


async def test_what_nobody_waits_for_any_more_is_not_sent(server, judge_at, rows, until):
    judge = judge_at(server, max_wait=3600.0)
    asking = asyncio.create_task(ask(judge))
    await until(lambda: rows() == ["open"])
    asking.cancel()
    await until(lambda: not rows())

    assert server.calls == []


def test_failures_are_statuses_and_never_scores(judge_at, cases):
    def result(request):
        return errored() if "shop 1 " in request.text else None

    with BatchesServer(result=result) as server:
        run = evaluate(cases, judge=judge_at(server))
    statuses = {row.case.id: {r.status.value for r in row.results.values()} for row in run}
    assert statuses["case-1"] == {"judge_error"}
    assert statuses["case-2"] == {"scored"}
    assert run.metrics["relevance"].measured == len(cases) - 1


async def test_a_store_that_cannot_be_used_is_a_judge_that_failed(server, judge_at, tmp_path):
    (tmp_path / "taken.db").write_bytes(b"not a database" * 100)
    with pytest.raises(JudgeAPIError, match="store of the batch judge cannot be used"):
        await ask(judge_at(server, store=tmp_path / "taken.db"))


async def test_errors_quote_nothing_that_was_asked_or_said(judge_at, caplog):
    secret = "tulip-7731"
    with BatchesServer(respond=lambda _: faults.wrong_schema()) as server:
        judge = judge_at(server)
        server.plan("create", faults.server_error())
        with pytest.raises(JudgeResponseError) as caught:
            await judge.evaluate_relevance(secret, secret)
    assert secret not in str(caught.value)
    assert secret not in caplog.text

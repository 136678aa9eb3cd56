"""Requests come together, go out in one batch, and each gets its reply at half the price."""

from __future__ import annotations

import asyncio
import json

import pytest

from ragaliq import ClaudeBatchJudge, ClaudeJudge, ConfigurationError, estimate, evaluate
from ragaliq.testing import MessagesServer

CONTEXT = ["The Eiffel Tower is in Paris, and 330 metres high."]


async def relevance(judge, number):
    return await judge.evaluate_relevance(f"Where is number {number}?", f"Number {number} is here.")


async def test_requests_asked_together_go_out_in_one_batch(server, judge):
    results = await asyncio.gather(*(relevance(judge, number) for number in range(7)))

    assert [result.score > 0 for result in results] == [True] * 7
    assert server.calls.count("create") == 1
    assert len(server.paid) == len(set(server.paid)) == 7


async def test_each_reply_goes_to_the_one_who_asked(server, judge):
    # The server gives the results in another order than that of the requests.
    claims = [f"Tower {number} is in Paris." for number in range(20)]
    found = await asyncio.gather(*(judge.extract_claims(claim) for claim in claims))

    assert [result.claims for result in found] == [[claim] for claim in claims]


async def test_a_full_batch_goes_out_without_waiting(server, judge_at):
    judge = judge_at(server, max_requests=3, max_wait=3600.0)
    await asyncio.gather(*(relevance(judge, number) for number in range(6)))

    assert sorted(len(batch.requests) for batch in server.batches) == [3, 3]


async def test_a_batch_is_full_by_its_size_as_well(server, judge_at):
    judge = judge_at(server, max_bytes=10_000)
    await asyncio.gather(*(relevance(judge, number) for number in range(12)))

    sizes = [len(json.dumps(batch.requests)) for batch in server.batches]
    assert len(sizes) > 1
    assert max(sizes) < 10_000


async def test_a_request_waits_for_company_only_so_long(server, judge_at):
    assert (await relevance(judge_at(server, max_wait=0.01), 1)).score > 0


async def test_a_batch_is_asked_after_until_it_has_ended(server, judge, until):
    server.holds = True
    asking = asyncio.create_task(relevance(judge, 1))
    await until(lambda: server.calls.count("retrieve") >= 3)
    server.end()

    assert (await asking).score > 0
    assert server.calls.count("create") == 1


async def test_the_same_question_asked_twice_at_once_gets_two_answers(server, judge):
    # As with any judge: repeating a question shows how far its answers spread.
    await asyncio.gather(relevance(judge, 1), relevance(judge, 1))

    assert len(set(server.paid)) == 2


async def test_replies_are_deleted_when_they_have_been_handed_over(server, judge, rows):
    await relevance(judge, 1)

    assert rows() == []


async def test_a_request_is_what_the_messages_api_would_get(server, judge, judge_at):
    await judge.verify_claims(["It is in Paris."], CONTEXT)
    with MessagesServer() as plain:
        await ClaudeJudge(api_key="k", base_url=plain.url).verify_claims(
            ["It is in Paris."], CONTEXT
        )
    (batched,) = server.requests
    (direct,) = plain.requests
    body = json.loads(json.dumps(direct.body))
    for block in body["messages"][0]["content"]:
        block.pop("cache_control", None)  # in a batch nobody knows whether it would pay
    assert batched.body == body


async def test_a_reply_costs_half(server, judge, judge_at):
    usage = (await relevance(judge, 1)).spent()
    with MessagesServer() as plain:
        direct = await relevance(ClaudeJudge(api_key="k", base_url=plain.url), 1)
    full = direct.spent()

    assert usage.total_tokens == full.total_tokens
    assert usage.cost_usd == pytest.approx(full.cost_usd / 2)
    assert usage.saved_usd == pytest.approx(full.cost_usd / 2)
    assert full.saved_usd == 0.0


def test_half_is_what_the_price_list_says_of_the_default_model():
    from genai_prices import Usage, calc_price

    from ragaliq import DEFAULT_JUDGE_MODEL
    from ragaliq.judges.pricing import BATCH_PRICE

    usage = Usage(
        input_tokens=3_000_000,
        cache_read_tokens=1_000_000,
        cache_write_tokens=1_000_000,
        output_tokens=1_000_000,
    )
    full = calc_price(usage, DEFAULT_JUDGE_MODEL, provider_id="anthropic")
    batch = calc_price(
        usage,
        DEFAULT_JUDGE_MODEL,
        provider_id="anthropic",
        price_context={"processing": "batch"},
    )
    assert float(batch.total_price) == pytest.approx(float(full.total_price) * BATCH_PRICE)


def test_an_evaluation_has_more_cases_in_work_than_it_was_told_so_that_batches_fill(
    server, judge, cases
):
    run = evaluate(cases, judge=judge, concurrency=1)

    assert run.metrics["faithfulness"].measured == len(cases)
    # Claims and relevance of all cases, then the verdicts of all cases.
    assert [len(batch.requests) for batch in server.batches] == [10, 5]
    assert run.usage.saved_usd == pytest.approx(run.usage.cost_usd)


def test_the_duration_of_a_result_is_the_time_it_really_took(server, judge_at, cases):
    run = evaluate(cases[:1], judge=judge_at(server, max_wait=0.2), evaluators=["relevance"])

    assert run[0].results["relevance"].duration > 0.2


def test_an_estimate_is_at_half_price_and_sends_nothing(server, judge, cases):
    halved = estimate(cases, judge=judge).usage
    full = estimate(cases, judge=ClaudeJudge(api_key="k")).usage

    assert server.calls == []
    assert halved.cost_usd == pytest.approx(full.cost_usd / 2)
    assert halved.saved_usd == pytest.approx(full.cost_usd / 2)


def test_only_its_owner_may_read_the_file(server, judge, store, cases):
    evaluate(cases[:1], judge=judge)

    assert store.stat().st_mode & 0o077 == 0
    assert store.with_name("batches.db.locks").stat().st_mode & 0o077 == 0


def test_what_is_done_is_not_in_the_file_any_more(server, judge, store, cases):
    evaluate(cases, judge=judge)

    import sqlite3

    with sqlite3.connect(store) as connection:
        tables = ("batch_requests", "batch_holds", "state")
        left = [connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables]
    connection.close()
    assert left == [0, 0, 0]


def test_no_key_is_in_the_file(server, judge, store, cases):
    evaluate(cases, judge=judge)

    files = [path for path in store.parent.glob("batches.db*") if path.is_file()]
    assert files
    assert not any(b"test-key-Zq81" in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_requests": 0}, "max_requests must be a positive number"),
        ({"max_requests": 100_001}, "max_requests can be at most 100,000"),
        ({"max_bytes": 300_000_000}, "max_bytes can be at most 256,000,000"),
        ({"max_wait": float("nan")}, "max_wait must be a positive number"),
        ({"poll_interval": -1}, "poll_interval must be a positive number"),
        ({"cases_in_flight": 0}, "cases_in_flight must be positive"),
        ({"store": "sqlite:///b.db?max_age_days=3"}, "knows max_requests"),
        ({"store": ":memory:"}, "a store is a file"),
        ({"store": None}, "RAGALIQ_BATCH_STORE"),
    ],
)
def test_a_wrong_setting_is_refused(server, judge_at, settings, words):
    with pytest.raises(ConfigurationError, match=words):
        judge_at(server, **settings)


def test_the_address_of_the_store_may_hold_settings(monkeypatch, tmp_path):
    monkeypatch.setenv("RAGALIQ_BATCH_STORE", f"sqlite:///{tmp_path}/b.db?max_age=7200")
    judge = ClaudeBatchJudge(api_key="k")

    assert judge.patience == 7200
    assert judge.store == tmp_path / "b.db"

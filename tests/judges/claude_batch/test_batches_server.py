"""The loopback server speaks the batch endpoints as Anthropic's SDK expects them."""

from __future__ import annotations

import anthropic
import pytest

from ragaliq.testing import BatchesServer, Reply, faults
from ragaliq.testing.batches import errored


def request(name, text="Hello."):
    message = {"role": "user", "content": text}
    return {
        "custom_id": name,
        "params": {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": [message]},
    }


@pytest.fixture
def client(server):
    with anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as made:
        yield made


def test_a_batch_runs_its_course(server, client):
    server.holds = True
    batch = client.messages.batches.create(requests=[request("a"), request("b")])
    assert batch.processing_status == "in_progress"
    assert batch.request_counts.processing == 2
    assert client.messages.batches.retrieve(batch.id).results_url is None
    assert server.paid == []

    server.end()
    ended = client.messages.batches.retrieve(batch.id)
    assert (ended.processing_status, ended.request_counts.succeeded) == ("ended", 2)
    results = {row.custom_id: row.result for row in client.messages.batches.results(batch.id)}
    assert {name: result.type for name, result in results.items()} == dict.fromkeys(
        "ab", "succeeded"
    )
    assert results["a"].message.content[0].text == "OK."
    assert sorted(server.paid) == ["a", "b"]


def test_batches_are_listed_newest_first_and_page_by_page(server, client):
    made = [client.messages.batches.create(requests=[request(str(n))]).id for n in range(5)]

    assert [batch.id for batch in client.messages.batches.list(limit=2)] == made[::-1]


def test_a_canceled_batch_ends_with_canceled_requests(server, client):
    server.holds = True
    batch = client.messages.batches.create(requests=[request("a")])
    assert client.messages.batches.cancel(batch.id).processing_status == "canceling"
    assert client.messages.batches.retrieve(batch.id).request_counts.canceled == 1
    assert server.paid == []


@pytest.mark.parametrize(
    "requests",
    [
        [],
        [request("a"), request("a")],
        [request("x" * 65)],
        [request("with space")],
        [request("")],
    ],
)
def test_a_wrong_batch_is_refused(server, client, requests):
    with pytest.raises(anthropic.BadRequestError):
        client.messages.batches.create(requests=requests)


def test_a_wrong_request_is_found_when_the_batch_has_ended(server, client):
    wrong = request("a")
    del wrong["params"]["max_tokens"]
    batch = client.messages.batches.create(requests=[wrong, request("b")])
    client.messages.batches.retrieve(batch.id)
    kinds = {row.custom_id: row.result.type for row in client.messages.batches.results(batch.id)}
    assert kinds == {"a": "errored", "b": "succeeded"}


def test_unknown_batches_and_paths_are_not_found(server, client):
    for ask in (
        client.messages.batches.retrieve,
        client.messages.batches.cancel,
        lambda name: client.get(f"/v1/messages/batches/{name}/results", cast_to=object),
        lambda name: client.get(f"/v1/{name}", cast_to=object),
    ):
        with pytest.raises(anthropic.NotFoundError):
            ask("msgbatch_0")


def test_planned_failures_come_once_each(server, client):
    server.plan("create", Reply(status=503), faults.cut_off())
    with pytest.raises(anthropic.InternalServerError):
        client.messages.batches.create(requests=[request("a")])
    assert server.batches == []
    with pytest.raises(anthropic.APIConnectionError):
        client.messages.batches.create(requests=[request("a")])
    assert len(server.batches) == 1  # it was made, and only the answer was lost


def test_a_result_can_be_given_for_each_request():
    with BatchesServer(result=lambda one: errored() if one.text == "Bad." else None) as server:
        client = anthropic.Anthropic(api_key="k", base_url=server.url)
        batch = client.messages.batches.create(requests=[request("a", "Bad."), request("b")])
        client.messages.batches.retrieve(batch.id)
        rows = {row.custom_id: row.result for row in client.messages.batches.results(batch.id)}
        client.close()
    assert rows["a"].error.error.type == "invalid_request_error"
    assert rows["b"].type == "succeeded"


def test_it_is_a_messages_api_as_well(server, client):
    message = client.messages.create(**request("a")["params"])

    assert message.content[0].text == "OK."

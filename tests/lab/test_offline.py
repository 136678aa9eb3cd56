"""Requests that are written instead of sent, and replies that came back from anywhere."""

import json

import pytest

from loopback import ChatCompletionsServer, MessagesServer
from ragaliq import ClaimVerdict, ConfigurationError, DatasetError, LocalJudge
from ragaliq.datasets import read_labelled_claims
from ragaliq.errors import JudgeError
from ragaliq.judges import ClaudeJudge, OpenAICompatibleJudge
from ragaliq.lab.bench import bench_of
from ragaliq.lab.commands.judge import require_some_success
from ragaliq.lab.judging import judge_claims
from ragaliq.lab.recording import RequestRecorder, replay_judge
from ragaliq.testing import ScriptedJudge

SERVERS = {
    "claude": (MessagesServer, lambda url: ClaudeJudge(api_key="test", base_url=url)),
    "openai": (
        ChatCompletionsServer,
        lambda url: OpenAICompatibleJudge(base_url=url, model="small"),
    ),
}


def decide(claim: str, context: list[str]) -> ClaimVerdict:
    """A model with an opinion of its own, and a doubt."""
    number = int(claim.split()[1])
    return ClaimVerdict(
        verdict=("SUPPORTED", "NOT_ENOUGH_INFO", "CONTRADICTED")[number % 3],
        evidence="" if number % 3 == 1 else context[0],
        confidence=0.5 + number % 5 / 10,
    )


@pytest.fixture
def labels(tmp_path):
    rows = [
        {
            "id": f"c{number}",
            "claim": f"Room {number} is small.",
            "context": [f"Room {number} is small.", "Rooms are rooms."],
            "label": number % 2,
        }
        for number in range(12)
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(params=SERVERS)
def model(request, monkeypatch):
    """A server with a scripted model behind it, and the judge that asks it; time stands still."""
    monkeypatch.setattr("time.perf_counter", lambda: 0.0)
    kind, judge = SERVERS[request.param]
    with kind(ScriptedJudge(verdicts=decide)) as server:
        yield server, judge


async def bench(labels, judge, path) -> bytes:
    claims = list(read_labelled_claims(labels))
    judged = [each async for each in judge_claims(claims, judge, concurrency=1)]
    bench_of(judged, judge, data=labels.name).save(path)
    return path.read_bytes()


def usage_of(server, reply) -> dict:
    spent = reply["usage"]
    if isinstance(server, MessagesServer):
        return {name: spent[name] for name in ("input_tokens", "output_tokens")} | {
            "cache_read_tokens": spent["cache_read_input_tokens"],
            "cache_write_tokens": spent["cache_creation_input_tokens"],
        }
    return {"input_tokens": spent["prompt_tokens"], "output_tokens": spent["completion_tokens"]}


async def test_rendered_requests_answered_through_a_file_give_the_bench_of_the_live_model(
    model, labels, tmp_path
):
    server, judge = model
    said = []
    keep = server._body
    server._body = lambda *args: said.append(keep(*args)) or said[-1]
    live = await bench(labels, judge(server.url), tmp_path / "live.json")
    asked = len(server.requests)

    unreachable = judge("http://127.0.0.1:9")
    requests, replies = tmp_path / "requests.jsonl", tmp_path / "replies.jsonl"
    writer = RequestRecorder(unreachable, requests)
    await bench(labels, writer.judge, tmp_path / "rendered.json")
    written = [json.loads(line) for line in requests.read_text().splitlines()]
    assert writer.count == len(written) == asked
    assert [each["messages"][0]["content"] for each in written] == [
        request.text for request in server.requests
    ]
    assert {each["system"] for each in written} == {server.requests[0].system}
    replies.write_text(
        "".join(
            json.dumps(
                {
                    "id": line["id"],
                    "text": reply["content"][0]["text"]
                    if isinstance(server, MessagesServer)
                    else reply["choices"][0]["message"]["content"],
                    "usage": {**usage_of(server, reply), "requests": 1, "cost_usd": None},
                }
            )
            + "\n"
            for line, reply in zip(written, said, strict=True)
        )
    )
    again = await bench(labels, replay_judge(unreachable, replies), tmp_path / "again.json")
    assert again == live
    assert len(server.requests) == asked


async def test_a_request_without_a_reply_is_a_failure_of_that_claim(labels, tmp_path):
    judge = ClaudeJudge(api_key="test")
    (tmp_path / "none.jsonl").write_text("")
    claims = list(read_labelled_claims(labels))
    estimating = replay_judge(judge, tmp_path / "none.jsonl")
    assert estimating.fingerprint() == judge.fingerprint()
    judged = [each async for each in judge_claims(claims[:2], estimating)]
    assert {each.failure for each in judged} == {"judge_error"}
    with pytest.raises(
        JudgeError, match=r"failed on all 2 claims .*holds no reply to this request"
    ):
        require_some_success(judged, labels)


@pytest.mark.parametrize(
    "lines",
    [
        '{"text": "no id"}',
        '{"id": "a", "output": "x"}',
        '{"id": "a", "content": [{}]}',
        "no JSON",
        '{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}',
    ],
)
def test_a_file_that_holds_no_replies_is_refused_with_the_line(lines, tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text(lines)
    with pytest.raises(DatasetError, match=r"line [12]"):
        replay_judge(ClaudeJudge(api_key="test"), path)


def test_a_judge_that_sends_nothing_has_nothing_to_render(tmp_path):
    with pytest.raises(ConfigurationError, match="no requests"):
        RequestRecorder(LocalJudge(), tmp_path / "requests.jsonl")

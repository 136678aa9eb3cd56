"""Served groundedness models on a loopback server: what they are asked, and how yes is read."""

import math

import pytest

from products_receivers import Receiver
from ragaliq import (
    CascadeJudge,
    ConfigurationError,
    EntailmentJudge,
    FaithfulnessEvaluator,
    JudgeAPIError,
    JudgeResponseError,
    RAGTestCase,
    ScoringPolicy,
)
from ragaliq.judges.resolve import resolve_judge

CONTEXT = ["The shop is in Graz.", "Refunds take five days."]
DOC = "The shop is in Graz. Refunds take five days."
SERVED = ["granite-guardian-3.3", "granite-guardian-3.2", "bespoke-minicheck-7b", "paladin-mini"]


def step(**chances):
    top = [{"token": word, "logprob": math.log(chance)} for word, chance in chances.items()]
    return {"token": top[0]["token"], "logprob": top[0]["logprob"], "top_logprobs": top}


class Served(Receiver):
    """Answers every request with `steps`."""

    protocol = "HTTP/1.0"  # a connection for each request
    steps, status = [step(Yes=0.9, No=0.1)], 200

    def reply(self, method, path, body):
        logprobs = None if self.steps is None else {"content": self.steps}
        choice = {"message": {"content": "?"}, "logprobs": logprobs}
        usage = {"prompt_tokens": 9, "completion_tokens": 1}
        return self.status, {"choices": [choice], "usage": usage}


@pytest.fixture
def server():
    made = Served()
    made.url += "/v1"
    yield made
    made.stop()


def asked_of(name, claim):
    granite = {"guardian_config": {"criteria_id": "groundedness"}, "think": False}
    if name == "granite-guardian-3.3":
        return {
            "messages": [{"role": "assistant", "content": claim}],
            "documents": [{"doc_id": "0", "text": DOC}],
            "chat_template_kwargs": granite,
        }
    if name == "granite-guardian-3.2":
        return {
            "messages": [
                {"role": "context", "content": DOC},
                {"role": "assistant", "content": claim},
            ],
            "chat_template_kwargs": {"guardian_config": {"risk_name": "groundedness"}},
        }
    return {}


@pytest.mark.parametrize("name", SERVED)
async def test_yes_means_what_the_model_means_by_it(server, name):
    judge = EntailmentJudge(name, base_url=server.url, api_key="secret")
    if name == "granite-guardian-3.3":
        server.steps = [step(**{"<score>": 1.0}), step(**{" yes": 0.9, " no": 0.1})]
    verdict = await judge.verify_claim("Refunds take five days.", CONTEXT)
    if name.startswith("granite"):  # its yes is: not grounded
        assert (verdict.verdict, verdict.confidence) == ("NOT_ENOUGH_INFO", pytest.approx(0.9))
        assert verdict.supporting_chunk_ids == []
    else:
        assert (verdict.verdict, verdict.confidence) == ("SUPPORTED", pytest.approx(0.9))
        assert verdict.supporting_chunk_ids == [1]
    ((_, path, headers, body),) = server.requests
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == "Bearer secret"
    assert (body["model"], body["logprobs"], body["temperature"]) == (judge.model, True, 0)
    expected = asked_of(name, "Refunds take five days.")
    assert {field: body[field] for field in expected} == expected
    said = body["messages"][-1]["content"]
    if name == "bespoke-minicheck-7b":
        assert said == f"Document: {DOC}\nClaim: Refunds take five days."
        assert body["messages"][0]["content"].endswith('responding with either "Yes" or "No".')
    elif name == "paladin-mini":
        assert f"<DOCUMENT>\n{DOC}\n</DOCUMENT>" in said
        assert "<CLAIM>\nRefunds take five days.\n</CLAIM>" in said
    assert (verdict.usage.requests, verdict.usage.input_tokens) == (1, 9)


async def test_one_claim_a_request_and_the_context_first_once(server):
    judge = EntailmentJudge("bespoke-minicheck-7b", base_url=server.url, served_as="mini")
    claims = [f"Claim {i}." for i in range(6)]
    reply = await judge.verify_claims(claims, CONTEXT)
    assert [verdict.verdict for verdict in reply.verdicts] == ["SUPPORTED"] * 6
    assert reply.usage.requests == 6
    said = [body["messages"][-1]["content"] for *_, body in server.requests]
    assert said[0].endswith("Claim: Claim 0.")
    assert sorted(each.partition("Claim: ")[2] for each in said) == claims
    assert {body["model"] for *_, body in server.requests} == {"mini"}
    braces = await judge.verify_claim("A {claim} in {context}.", ["{claim} and {context}."])
    assert braces.verdict == "SUPPORTED"
    assert (
        "Document: {claim} and {context}.\nClaim: A {"
        in server.requests[-1][3]["messages"][1]["content"]
    )


@pytest.mark.parametrize(
    ("steps", "status", "error", "says"),
    [
        (None, 200, JudgeResponseError, "sends no log-probabilities"),
        ([step(maybe=1.0)], 200, JudgeResponseError, "neither yes nor no"),
        ([step(Yes=1.0)], 500, JudgeAPIError, "answered 500"),
    ],
)
async def test_a_server_that_cannot_say_is_a_failure_and_no_verdict(
    server, steps, status, error, says
):
    server.steps, server.status = steps, status
    judge = EntailmentJudge("granite-guardian-3.2", base_url=server.url)
    with pytest.raises(error, match=says) as raised:
        await judge.verify_claim("Zanzibar is far.", CONTEXT)
    assert "Zanzibar" not in str(raised.value)
    case = RAGTestCase(query="q", context=CONTEXT, response="Zanzibar is far away.")
    result = await FaithfulnessEvaluator(policy=ScoringPolicy.LIVE).evaluate(case, judge)
    assert (result.status.value, result.score) == ("judge_error", None)
    absent = EntailmentJudge("paladin-mini", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(JudgeAPIError, match="cannot be reached"):
        await absent.verify_claim("A.", CONTEXT)


async def test_what_other_requests_cost_is_counted_where_one_fails(server, monkeypatch):
    reply = server.reply

    def fail_on_one(method, path, body):
        return (500, {}) if "Claim 3." in str(body) else reply(method, path, body)

    monkeypatch.setattr(server, "reply", fail_on_one)
    judge = EntailmentJudge("bespoke-minicheck-7b", base_url=server.url)
    with pytest.raises(JudgeAPIError) as raised:
        await judge.verify_claims([f"Claim {i}." for i in range(4)], CONTEXT)
    assert (raised.value.usage.requests, raised.value.usage.input_tokens) == (3, 27)


def test_a_licence_that_forbids_commercial_use_is_said(caplog):
    EntailmentJudge("paladin-mini", base_url="http://127.0.0.1:9/v1")
    assert not caplog.records
    EntailmentJudge("bespoke-minicheck-7b", base_url="http://127.0.0.1:9/v1")
    assert "CC BY-NC 4.0" in caplog.text


def test_it_is_named_in_cascades_and_variables(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    named = "entailment:granite-guardian-3.3@http://127.0.0.1:9/v1"
    assert isinstance(resolve_judge(named), EntailmentJudge)
    cascade = resolve_judge(f"local>{named}>claude")
    assert isinstance(cascade, CascadeJudge)
    assert cascade.name == "local>entailment>claude"
    for wrong, says in [
        ("entailment:nobody", "no small judge 'nobody'; use one of factcg"),
        ("entailment:factcg", "download yaxili96/FactCG"),
        ("entailment:paladin-mini", "start one with qualifire"),
    ]:
        with pytest.raises(ConfigurationError, match=says):
            resolve_judge(wrong)

"""What the judge asks a chat-completions server, and what it makes of the replies."""

from __future__ import annotations

import json

import pytest

from ragaliq import RAGTestCase, estimate, evaluate
from ragaliq.core.results import JudgeUsage
from ragaliq.judges import BatchingJudge, ClaimVerdict, OpenAICompatibleJudge
from ragaliq.judges.wire import VerdictsReply, form_of
from ragaliq.testing import ChatCompletionsServer, Reply, ScriptedJudge

CONTEXT = ["The tower was finished in 1889.", "It is 330 metres high."]


async def test_it_decides_all_claims_in_one_request(server, judge):
    claims = ["The tower was finished in 1889.", "It is 400 metres high.", "It is 330 metres high."]

    result = await judge.verify_claims(claims, CONTEXT)

    assert [item.verdict for item in result.verdicts] == [
        "SUPPORTED",
        "NOT_ENOUGH_INFO",
        "SUPPORTED",
    ]
    assert [item.index for item in result.verdicts] == [0, 1, 2]
    assert result.verdicts[2].supporting_chunk_ids == [1]
    assert result.verdicts[0].evidence == CONTEXT[0]
    assert len(server.requests) == 1


async def test_it_finds_claims_grades_and_scores(judge_at):
    behind = ScriptedJudge(
        claims=["a", "b"],
        verdicts={"a": ClaimVerdict(verdict="CONTRADICTED", reason="no", confidence=0.4)},
        relevance=0.25,
    )
    with ChatCompletionsServer(behind) as server:
        judge = judge_at(server)
        assert (await judge.extract_claims("r")).claims == ["a", "b"]
        graded = (await judge.grade_statements("q", "r", ["c"])).verdicts
        assert [(item.statement, item.verdict) for item in graded] == [
            ("a", "CONTRADICTED"),
            ("b", "NOT_ENOUGH_INFO"),
        ]
        assert (graded[0].reason, graded[0].confidence) == ("no", 0.4)
        assert (await judge.verify_claim("a", ["c"])).verdict == "CONTRADICTED"
        assert (await judge.evaluate_relevance("q", "r")).score == 0.25
        assert (await judge.evaluate_context_relevance("q", "c")).score == 0.25
        assert (await judge.evaluate_faithfulness("r", ["c"])).score == 0.0
        await judge.aclose()


def test_it_serves_a_whole_evaluation(server, judge):
    case = RAGTestCase(
        query="How high is the tower?", context=CONTEXT, response="It is 330 metres high."
    )

    run = evaluate([case], evaluators=["faithfulness", "hallucination", "relevance"], judge=judge)

    assert run[0].results["faithfulness"].score == 1.0
    assert run[0].results["hallucination"].score == 1.0
    assert run[0].results["relevance"].status == "scored"
    assert len(server.requests) == 3


async def test_a_request_holds_system_prompt_texts_and_the_form_of_the_reply(server, judge):
    await judge.verify_claims(["A claim."], CONTEXT)

    request = server.requests[0]
    assert request.path == "/v1/chat/completions"
    assert request.model == "small"
    assert [role for role, _ in request.messages] == ["system", "user"]
    assert "untrusted data" in request.system
    assert request.text.startswith("<context>\n")
    assert request.text.endswith(form_of(VerdictsReply))
    assert request.body["temperature"] == 0.0
    assert "max_tokens" not in request.body
    assert request.body["response_format"]["json_schema"]["strict"] is True
    assert request.schema["properties"]["verdicts"]["items"]["additionalProperties"] is False


async def test_the_limit_and_the_temperature_are_the_callers(server, judge_at):
    await judge_at(server, max_tokens=99, temperature=None).evaluate_relevance("q", "r")

    assert server.requests[0].body["max_tokens"] == 99
    assert "temperature" not in server.requests[0].body


async def test_the_words_that_ask_for_json_can_be_replaced(server, judge_at):
    judge = judge_at(server, prompts={"reply_form": "---\nversion: 9\n---\nJSON: {{form}} !"})

    await judge.evaluate_relevance("q", "r")

    assert server.requests[0].text.endswith('"score": <number: 0 to 1.>} !')
    assert judge.prompt_versions["reply_form"] == "9"


async def test_nothing_is_asked_about_nothing(server, judge):
    assert (await judge.extract_claims("  ")).claims == []
    assert (await judge.verify_claims([], CONTEXT)).verdicts == []
    assert (await judge.verify_claim("a", [" "])).verdict == "NOT_ENOUGH_INFO"
    assert server.requests == []


async def test_tokens_are_counted_with_cached_ones_apart(server, judge):
    long = ["A fact about the tower. " * 400]

    first = (await judge.verify_claims(["a"], long)).spent()
    second = (await judge.verify_claims(["b"], long)).spent()

    assert first.cache_read_tokens == 0
    assert second.cache_read_tokens >= 2048
    assert second.cache_read_tokens % 128 == 0
    assert first.total_tokens == second.total_tokens
    assert (first.requests, first.cost_usd) == (1, None)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, JudgeUsage(requests=1, cost_usd=None)),
        ({}, JudgeUsage(requests=1, cost_usd=None)),
        ({"total_tokens": 12}, JudgeUsage(unsplit_tokens=12, requests=1, cost_usd=None)),
        (
            {"prompt_tokens": "many", "completion_tokens": 3, "prompt_tokens_details": 4},
            JudgeUsage(output_tokens=3, requests=1, cost_usd=None),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 99, "cache_write_tokens": -1},
            },
            JudgeUsage(cache_read_tokens=10, output_tokens=2, requests=1, cost_usd=None),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4},
            },
            JudgeUsage(
                input_tokens=3,
                cache_read_tokens=3,
                cache_write_tokens=4,
                output_tokens=2,
                requests=1,
                cost_usd=None,
            ),
        ),
    ],
)
async def test_whatever_a_server_says_of_tokens_is_counted_as_far_as_it_goes(
    server, judge, usage, expected
):
    server.always(Reply(edit=lambda body: body | {"usage": usage}))

    assert (await judge.evaluate_relevance("a", "b")).spent() == expected


def test_only_a_known_seller_has_a_price():
    usage = JudgeUsage(input_tokens=1_000_000, requests=1)

    def judge(url: str) -> OpenAICompatibleJudge:
        return OpenAICompatibleJudge(base_url=url, model="llama-3.1-8b-instant", api_key="k")

    assert judge("http://localhost:11434/v1").price(usage) is None
    assert judge("https://models.example.org/v1").price(usage) is None
    assert judge("https://api.groq.com/openai/v1").price(usage) > 0


def test_an_estimate_counts_requests_and_prices_what_has_a_price(server, judge):
    case = RAGTestCase(query="q", context=CONTEXT, response="It is 330 metres high.")
    seller = OpenAICompatibleJudge(
        base_url="https://api.groq.com/openai/v1", model="llama-3.1-8b-instant", api_key="k"
    )

    own, sold = (estimate([case], judge=one).usage for one in (judge, seller))

    assert own.requests == sold.requests == 3
    assert own.cost_usd is None
    assert sold.cost_usd > 0
    assert server.requests == []


async def test_content_in_parts_is_read(server, judge):
    text = json.dumps({"reasoning": "so", "score": 0.5})

    def edit(body):
        body["choices"][0]["message"]["content"] = [
            {"type": "text", "text": text[:9]},
            {"type": "text", "text": text[9:]},
            {"type": "other"},
        ]
        return body

    server.always(Reply(edit=edit))

    assert (await judge.evaluate_relevance("a", "b")).score == 0.5


@pytest.mark.parametrize("reason", [None, "", "eos", "end_turn", 7])
async def test_an_unusual_end_is_an_end(server, judge, reason):
    def edit(body):
        body["choices"][0]["finish_reason"] = reason
        return body

    server.always(Reply(edit=edit))

    assert (await judge.evaluate_relevance("a", "a")).score == 0.0


def test_the_window_decides_how_much_is_asked_at_once(judge_at, server):
    small, large = judge_at(server), judge_at(server, context_window=32_768)

    assert isinstance(small, BatchingJudge)
    assert (small.max_context_chars, small.max_answer_chars, small.max_claims) == (6144, 3072, 8)
    assert (large.max_context_chars, large.max_answer_chars, large.max_claims) == (
        49_152,
        24_576,
        68,
    )


def test_a_context_beyond_the_window_is_judged_in_parts(server, judge):
    chunks = [f"Fact {n} is stated here. " + "Filling words follow. " * 200 for n in range(4)]
    case = RAGTestCase(query="q", context=chunks, response="Fact 3 is stated here.")

    run = evaluate([case], evaluators=["faithfulness"], judge=judge)

    assert run[0].results["faithfulness"].score == 1.0
    assert all(len(request.text) < 9_000 for request in server.requests)
    assert len(server.requests) == 1 + 4


def test_its_representation_shows_neither_key_nor_address():
    judge = OpenAICompatibleJudge(base_url="http://host.example/v1", model="m", api_key="KEY")

    assert repr(judge) == "OpenAICompatibleJudge(model='m')"

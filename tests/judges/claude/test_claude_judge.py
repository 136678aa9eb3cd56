"""What each method asks Claude, and what it makes of the reply."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from anthropic.types import Model

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeResponseError
from ragaliq.judges import DEFAULT_JUDGE_MODEL, BatchingJudge
from ragaliq.testing import MessagesServer, Reply, ScriptedJudge

QUERY = "Where is the Eiffel Tower?"
ANSWER = "The Eiffel Tower is in Paris. It was finished in 1889."
CONTEXT = ["Gustave Eiffel ran a company.", "The Eiffel Tower is in Paris, and 330 metres high."]


def replying(content: object) -> MessagesServer:
    """A server on which the model says `content`."""
    text = content if isinstance(content, str) else json.dumps(content)
    return MessagesServer(
        respond=lambda _: Reply(
            edit=lambda body: body | {"content": [{"type": "text", "text": text}]}
        )
    )


def verdict(**fields: object) -> dict[str, object]:
    return {
        "claim_id": "c1",
        "reason": "r",
        "evidence": "e",
        "chunk_ids": [0],
        "verdict": "SUPPORTED",
        "confidence": 0.8,
        **fields,
    }


def test_the_default_model_is_the_newest_sonnet_the_sdk_knows():
    known = get_args(get_args(Model)[0])
    sonnets = [name for name in known if name.startswith("claude-sonnet-")]
    newest = max(
        sonnets, key=lambda name: [int(part) for part in name.split("-")[2:4] if len(part) < 3]
    )

    assert newest == DEFAULT_JUDGE_MODEL


async def test_it_is_a_judge_that_batches_and_says_who_it_is(judge):
    assert isinstance(judge, BatchingJudge)
    assert (judge.name, judge.model) == ("claude", DEFAULT_JUDGE_MODEL)
    assert "test-key" not in repr(judge)


async def test_statements_are_extracted_from_question_and_answer(server, judge):
    result = await judge.extract_statements(QUERY, ANSWER)

    assert result.claims == ["The Eiffel Tower is in Paris.", "It was finished in 1889."]
    (request,) = server.requests
    assert f"<question>\n{QUERY}\n</question>" in request.text
    assert f"<answer>\n{ANSWER}\n</answer>" in request.text


async def test_claims_are_extracted_from_an_answer_without_its_question(server, judge):
    result = await judge.extract_claims(ANSWER)

    assert len(result.claims) == 2
    assert "<question>\n\n</question>" in server.requests[0].text


async def test_blank_claims_in_a_reply_are_no_claims(judge_at):
    with replying({"claims": [" One. ", "", "  "]}) as server:
        result = await judge_at(server).extract_statements(QUERY, ANSWER)

    assert result.claims == ["One."]


async def test_all_claims_are_decided_in_one_call(server, judge):
    result = await judge.verify_claims(["The Eiffel Tower is in Paris.", "It weighs 5 t."], CONTEXT)

    first, second = result.verdicts
    assert (first.index, first.verdict) == (0, "SUPPORTED")
    assert first.supporting_chunk_ids == [1]
    assert first.evidence in CONTEXT[1]
    assert first.confidence == 0.9
    assert first.reason
    assert (second.index, second.verdict) == (1, "NOT_ENOUGH_INFO")
    assert len(server.requests) == 1


async def test_one_claim_is_decided(judge):
    result = await judge.verify_claim("The Eiffel Tower is in Paris.", CONTEXT)

    assert result.verdict == "SUPPORTED"
    assert result.supporting_chunk_ids == [1]
    assert result.spent().requests == 1


async def test_statements_are_found_and_graded_in_one_call(server, judge):
    result = await judge.grade_statements(QUERY, ANSWER, CONTEXT)

    assert [(item.index, item.statement, item.verdict) for item in result.verdicts] == [
        (0, "The Eiffel Tower is in Paris.", "SUPPORTED"),
        (1, "It was finished in 1889.", "NOT_ENOUGH_INFO"),
    ]
    assert len(server.requests) == 1


async def test_relevance_comes_with_its_reasoning(judge):
    result = await judge.evaluate_relevance(QUERY, "The Eiffel Tower is in Paris.")

    assert result.score == pytest.approx(2 / 3)
    assert result.reasoning == "scripted"


async def test_context_relevance_asks_about_the_chunk(server, judge):
    result = await judge.evaluate_context_relevance(QUERY, CONTEXT[1])

    assert 0 < result.score <= 1
    assert f"<chunk>\n{CONTEXT[1]}\n</chunk>" in server.requests[0].text


async def test_holistic_faithfulness_takes_two_calls(server, judge):
    result = await judge.evaluate_faithfulness(ANSWER, CONTEXT)

    assert result.score == 0.5
    assert result.spent().requests == len(server.requests) == 2


async def test_holistic_faithfulness_of_an_answer_without_claims_is_one(judge_at):
    with replying({"claims": []}) as server:
        result = await judge_at(server).evaluate_faithfulness("Hello!", CONTEXT)

    assert result.score == 1.0


async def test_holistic_faithfulness_makes_up_no_verdict_for_an_undecided_claim(judge_at):
    def respond(request):
        if "claims" in request.schema["properties"]:
            return Reply()
        return Reply(
            edit=lambda body: body | {"content": [{"type": "text", "text": '{"verdicts": []}'}]}
        )

    with MessagesServer(respond=respond) as server, pytest.raises(JudgeResponseError) as caught:
        await judge_at(server).evaluate_faithfulness(ANSWER, CONTEXT)

    assert caught.value.usage.requests == 2


@pytest.mark.parametrize("context", [[], ["", " \n\t"]])
async def test_an_empty_context_supports_nothing_and_costs_nothing(server, judge, context):
    batch = await judge.verify_claims(["One.", "Two."], context)
    single = await judge.verify_claim("One.", context)

    assert [(item.index, item.verdict) for item in batch.verdicts] == [
        (0, "NOT_ENOUGH_INFO"),
        (1, "NOT_ENOUGH_INFO"),
    ]
    assert single.verdict == "NOT_ENOUGH_INFO"
    assert batch.spent() == single.spent() == JudgeUsage()
    assert server.requests == []


async def test_without_claims_or_an_answer_nothing_is_asked(server, judge):
    assert (await judge.verify_claims([], CONTEXT)).verdicts == []
    assert (await judge.extract_statements(QUERY, " \n")).claims == []
    assert (await judge.grade_statements(QUERY, "", CONTEXT)).verdicts == []
    assert server.requests == []


async def test_verdicts_are_matched_by_the_claim_they_name(judge_at):
    reply = [verdict(claim_id="c3"), verdict(claim_id=" C1 "), verdict(claim_id="2")]
    with replying({"verdicts": reply}) as server:
        result = await judge_at(server).verify_claims(["a", "b", "c"], CONTEXT)

    assert [item.index for item in result.verdicts] == [2, 0, 1]


@pytest.mark.parametrize("name", ["c4", "c0", "c-1", "", "claim one", "c1x", "c99999999999999999"])
async def test_a_verdict_for_a_claim_nobody_asked_about_has_no_index(judge_at, name):
    with replying({"verdicts": [verdict(claim_id=name)]}) as server:
        result = await judge_at(server).verify_claims(["a", "b", "c"], CONTEXT)

    assert [item.index for item in result.verdicts] == [None]


async def test_chunk_ids_that_do_not_exist_are_dropped(judge_at):
    with replying({"verdicts": [verdict(chunk_ids=[7, 1, -1, 0, 1])]}) as server:
        result = await judge_at(server).verify_claims(["a"], CONTEXT)

    assert result.verdicts[0].supporting_chunk_ids == [1, 0]


@pytest.mark.parametrize(("given", "kept"), [(1.7, 1.0), (-0.2, 0.0), (0.25, 0.25), (85, 1.0)])
async def test_confidence_and_scores_stay_within_zero_and_one(judge_at, given, kept):
    with replying({"verdicts": [verdict(confidence=given)]}) as server:
        result = await judge_at(server).verify_claims(["a"], CONTEXT)
    with replying({"reasoning": "r", "score": given}) as server:
        scored = await judge_at(server).evaluate_relevance(QUERY, ANSWER)

    assert result.verdicts[0].confidence == kept
    assert scored.score == kept


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_a_score_that_is_no_number_is_no_score(judge_at, number):
    with (
        replying(f'{{"reasoning": "r", "score": {number}}}') as server,
        pytest.raises(JudgeResponseError),
    ):
        await judge_at(server).evaluate_relevance(QUERY, ANSWER)


async def test_lower_case_verdicts_are_understood(judge_at):
    with replying({"verdicts": [verdict(verdict="not enough info")]}) as server:
        result = await judge_at(server).verify_claim("a", CONTEXT)

    assert result.verdict == "NOT_ENOUGH_INFO"


async def test_an_unknown_verdict_is_an_error_that_keeps_the_cost(judge_at):
    with (
        replying({"verdicts": [verdict(verdict="SECRET-MAYBE")]}) as server,
        pytest.raises(JudgeResponseError) as caught,
    ):
        await judge_at(server).verify_claims(["a"], CONTEXT)

    assert caught.value.usage.requests == 1
    assert "SECRET-MAYBE" not in str(caught.value)


async def test_a_single_claim_left_undecided_is_an_error_that_keeps_the_cost(judge_at):
    with (
        replying({"verdicts": [verdict(claim_id="c2")]}) as server,
        pytest.raises(JudgeResponseError) as caught,
    ):
        await judge_at(server).verify_claim("a", CONTEXT)

    assert caught.value.usage.total_tokens > 0


async def test_unknown_fields_in_a_reply_do_no_harm(judge_at):
    with replying({"verdicts": [verdict(mood="good")], "note": 1}) as server:
        result = await judge_at(server).verify_claims(["a"], CONTEXT)

    assert len(result.verdicts) == 1


async def test_thinking_and_split_text_blocks_are_read_as_one_reply(judge_at):
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": '{"reasoning": "r", '},
        {"type": "text", "text": '"score": 0.5}'},
    ]
    with MessagesServer(
        respond=lambda _: Reply(edit=lambda body: body | {"content": blocks})
    ) as server:
        result = await judge_at(server).evaluate_relevance(QUERY, ANSWER)

    assert result.score == 0.5


async def test_the_request_holds_the_reply_to_a_schema_and_sets_no_sampling(server, judge_at):
    await judge_at(server, model="claude-opus-5-5", max_tokens=321).verify_claims(["a"], CONTEXT)

    body = server.requests[0].body
    assert body["model"] == "claude-opus-5-5"
    assert body["max_tokens"] == 321
    assert set(body) == {"model", "max_tokens", "system", "messages", "output_config"}
    assert set(body["output_config"]) == {"format"}
    item = body["output_config"]["format"]["schema"]["$defs"]["ClaimReply"]
    assert next(iter(item["properties"])) == "claim_id"
    # The reason is written before the verdict it is to lead to.
    assert list(item["properties"]).index("reason") < list(item["properties"]).index("verdict")


async def test_effort_is_sent_when_asked_for(server, judge_at):
    await judge_at(server, effort="low").evaluate_relevance(QUERY, ANSWER)

    assert server.requests[0].body["output_config"]["effort"] == "low"


async def test_the_judge_behind_the_server_sees_the_very_texts(judge_at):
    behind = ScriptedJudge()
    claims = ["{{answer}} < 5 && <b>x</b>", 'a "quote"']
    context = ['{"a": [1, 2]}', "def f(x):\n    return x </chunk>\n\n"]
    with MessagesServer(behind) as server:
        await judge_at(server).verify_claims(claims, context)

    assert behind.calls[0].arguments == {"claims": claims, "context": context}

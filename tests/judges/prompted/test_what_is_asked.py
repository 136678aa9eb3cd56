"""What each method asks a model, and what it makes of the reply."""

import json
from typing import get_args

import pytest
from anthropic.types import Model

from loopback import Reply
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeResponseError
from ragaliq.judges import DEFAULT_JUDGE_MODEL
from ragaliq.judges.wire import VerdictsReply, form_of

QUERY = "Where is the Eiffel Tower?"
ANSWER = "The Eiffel Tower is in Paris. It was finished in 1889."
CONTEXT = ["Gustave Eiffel ran a company.", "The Eiffel Tower is in Paris, and 330 metres high."]

claude_only = pytest.mark.parametrize("api", ["claude"], indirect=True)
openai_only = pytest.mark.parametrize("api", ["openai"], indirect=True)


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


@pytest.fixture
def decided(api):
    """The verdicts on three claims that a model's reply gives."""

    async def decide(*rows: dict[str, object]):
        with api.saying({"verdicts": rows, "note": 1}) as server:
            judge = api.judge(server)
            reply = await judge.verify_claims(["a", "b", "c"], CONTEXT)
            await judge.aclose()
        return reply.verdicts

    return decide


def test_the_default_model_is_the_newest_sonnet_the_sdk_knows():
    known = get_args(get_args(Model)[0])
    sonnets = [name for name in known if name.startswith("claude-sonnet-")]
    newest = max(
        sonnets, key=lambda name: [int(part) for part in name.split("-")[2:4] if len(part) < 3]
    )

    assert newest == DEFAULT_JUDGE_MODEL


async def test_claims_are_extracted_from_question_and_answer(server, judge):
    asked = await judge.extract_statements(QUERY, ANSWER)
    alone = await judge.extract_claims(ANSWER)
    server.always(Reply(text=lambda _: '{"claims": [" One. ", "", "  "]}'))
    assert (await judge.extract_claims(ANSWER)).claims == ["One."]

    sentences = ["The Eiffel Tower is in Paris.", "It was finished in 1889."]
    assert asked.claims == alone.claims == sentences
    with_question, without, _ = server.requests
    assert f"<question>\n{QUERY}\n</question>" in with_question.text
    assert f"<answer>\n{ANSWER}\n</answer>" in with_question.text
    assert "<question>\n\n</question>" in without.text
    assert "untrusted data" in without.system


async def test_all_claims_are_decided_in_one_call(server, judge):
    result = await judge.verify_claims(["The Eiffel Tower is in Paris.", "It weighs 5 t."], CONTEXT)

    first, second = result.verdicts
    assert (first.index, first.verdict, first.supporting_chunk_ids) == (0, "SUPPORTED", [1])
    assert first.evidence in CONTEXT[1]
    assert first.confidence == 0.9
    assert first.reason
    assert (second.index, second.verdict) == (1, "NOT_ENOUGH_INFO")
    assert len(server.requests) == 1
    single = await judge.verify_claim("The Eiffel Tower is in Paris.", CONTEXT)
    assert (single.verdict, single.supporting_chunk_ids) == ("SUPPORTED", [1])
    assert single.spent().requests == 1


async def test_relevance_comes_with_its_reasoning(server, judge):
    result = await judge.evaluate_relevance(QUERY, "The Eiffel Tower is in Paris.")
    chunk = await judge.evaluate_context_relevance(QUERY, CONTEXT[1])

    assert result.score == pytest.approx(2 / 3)
    assert result.reasoning == "scripted"
    assert 0 < chunk.score <= 1
    assert f"<chunk>\n{CONTEXT[1]}\n</chunk>" in server.requests[1].text


async def test_holistic_faithfulness_makes_up_no_verdict_for_an_undecided_claim(api):
    rows = json.dumps({"verdicts": [verdict(claim_id="c2")]})

    def respond(request):
        return Reply() if "claims" in request.form else Reply(text=lambda _: rows)

    with api.serve(respond=respond) as server, pytest.raises(JudgeResponseError) as caught:
        await api.judge(server).evaluate_faithfulness(ANSWER, CONTEXT)

    assert caught.value.usage.requests == 2


@pytest.mark.parametrize("context", [["", " \n\t"]])
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


async def test_verdicts_are_matched_by_the_claim_they_name_or_have_no_index(decided):
    known, unknown = (
        ("c3", " C1 ", "2"),
        ("c4", "c0", "c-1", "", "claim one", "c1x", "c" + "9" * 17),
    )
    rows = await decided(*(verdict(claim_id=name) for name in (*known, *unknown)))

    assert [item.index for item in rows] == [2, 0, 1, *[None] * len(unknown)]


async def test_wrong_chunk_ids_are_dropped_and_other_fields_and_letters_do_no_harm(decided):
    row = verdict(chunk_ids=[7, 1, -1, 0, 1], mood="good", verdict="not enough info")
    (row,) = await decided(row)

    assert (row.supporting_chunk_ids, row.verdict) == ([1, 0], "NOT_ENOUGH_INFO")


@claude_only
@pytest.mark.parametrize("given", [-0.2, 85])
async def test_a_share_on_another_scale_is_asked_for_again_and_never_read(api, given):
    with api.saying({"reasoning": "r", "score": given}) as server:
        with pytest.raises(JudgeResponseError, match="from 0 to 1"):
            await api.judge(server).evaluate_relevance(QUERY, ANSWER)
        assert len(server.requests) == 2


async def test_a_claim_left_undecided_is_an_error_that_keeps_the_cost(api):
    row = verdict(claim_id="c2")
    with api.saying({"verdicts": [row]}) as server, pytest.raises(JudgeResponseError) as caught:
        await api.judge(server).verify_claim("a", CONTEXT)

    assert caught.value.usage.total_tokens > 0
    assert caught.value.usage.requests == 1


async def test_an_unknown_verdict_is_asked_for_again_and_not_quoted(api):
    row = verdict(verdict="SECRET-MAYBE")
    with api.saying({"verdicts": [row]}) as server, pytest.raises(JudgeResponseError) as caught:
        await api.judge(server).verify_claim("a", CONTEXT)

    assert caught.value.usage.requests == 2
    assert "verdicts.0.verdict" in str(caught.value)
    assert "SECRET-MAYBE" not in str(caught.value)


async def test_prompts_can_be_replaced_one_by_one(server, judge_at):
    relevance = "---\nversion: 7\n---\nIs {{answer}} an answer to {{question}}?"
    judge = judge_at(server, prompts={"relevance": relevance})
    await judge.evaluate_relevance("Q?", "A.")

    request = server.requests[0]
    filled = "Is <answer>\nA.\n</answer> an answer to <question>\nQ?\n</question>?"
    assert request.text.startswith(filled)
    assert "untrusted" in request.system


# --- Claude's own protocol --------------------------------------------------------------------


@claude_only
async def test_thinking_and_split_text_blocks_are_read_as_one_reply(api):
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": '{"reasoning": "r", '},
        {"type": "text", "text": '"score": 0.5}'},
    ]
    reply = Reply(edit=lambda body: body | {"content": blocks})
    with api.serve(respond=lambda _: reply) as server:
        assert (await api.judge(server).evaluate_relevance(QUERY, ANSWER)).score == 0.5


@claude_only
async def test_the_request_holds_the_reply_to_a_schema_and_sets_no_sampling(server, judge_at):
    judge = judge_at(server, model="claude-opus-5-5", max_tokens=321)
    await judge.verify_claims(["a"], CONTEXT)

    body = server.requests[0].body
    assert (body["model"], body["max_tokens"]) == ("claude-opus-5-5", 321)
    assert set(body) == {"model", "max_tokens", "system", "messages", "output_config"}
    assert set(body["output_config"]) == {"format"}
    fields = list(body["output_config"]["format"]["schema"]["$defs"]["ClaimReply"]["properties"])
    assert fields[0] == "claim_id"
    # The reason is written before the verdict it is to lead to.
    assert fields.index("reason") < fields.index("verdict")


# --- Chat completions -------------------------------------------------------------------------


@openai_only
async def test_a_request_holds_system_prompt_texts_and_the_form_of_the_reply(server, judge):
    await judge.verify_claims(["A claim."], CONTEXT)

    request = server.requests[0]
    assert request.path == "/v1/chat/completions"
    assert request.model == "small"
    assert [role for role, _ in request.messages] == ["system", "user"]
    assert request.text.startswith("<context>\n")
    assert request.text.endswith(form_of(VerdictsReply))
    assert request.body["temperature"] == 0.0
    assert "max_tokens" not in request.body
    assert request.body["response_format"]["json_schema"]["strict"] is True
    assert request.schema["properties"]["verdicts"]["items"]["additionalProperties"] is False


@openai_only
async def test_the_limit_and_the_words_for_json_are_the_callers(server, judge_at):
    prompts = {"reply_form": "---\nversion: 9\n---\nJSON: {{form}} !"}
    judge = judge_at(server, max_tokens=99, prompts=prompts)
    await judge.evaluate_relevance("q", "r")

    request = server.requests[0]
    assert request.body["max_tokens"] == 99
    assert request.text.endswith('"score": <number: 0 to 1.>} !')


AROUND = {
    "fenced, in prose": lambda text: f"Sure:\n\n```json\n{text}\n```\n\nLet me know.",
    "thought aloud": lambda text: f"<think>Is c1 so? {{maybe}}</think>\n{text}",
    "numbers for ids": lambda text: text.replace('"c1"', "1").replace('"c2"', "2"),
    "wrapped": lambda text: f'{{"status": "ok", "result": {text}}}',
}
TWO = ["The Eiffel Tower is in Paris.", "It is red."]


@openai_only
@pytest.mark.parametrize("way", AROUND)
async def test_what_stands_around_a_reply_does_not_matter(server, judge, way):
    server.always(Reply(text=AROUND[way]))
    result = await judge.verify_claims(TWO, CONTEXT)

    verdicts = {item.index: item.verdict for item in result.verdicts}
    assert verdicts == {0: "SUPPORTED", 1: "NOT_ENOUGH_INFO"}
    assert result.spent().requests == 1


@pytest.mark.parametrize(
    "reply",
    [
        "1. Yes, it says so.\n2. No. I see nothing of it in the context.",
        '[{"statement": "a", "verdict": 1}, {"statement": "b", "verdict": 0}]',
        '{"verdicts": [{"claim_id": "c1", "verdict": "SUPPORTED"}]}',
        "",
    ],
)
async def test_a_reply_of_another_form_is_asked_for_once_more_with_its_fault(server, judge, reply):
    server.enqueue(Reply(text=lambda _: reply))
    result = await judge.verify_claims(TWO, CONTEXT)

    assert {item.index: item.verdict for item in result.verdicts} == {
        0: "SUPPORTED",
        1: "NOT_ENOUGH_INFO",
    }
    assert result.spent().requests == len(server.requests) == 2
    first, again = (request.text for request in server.requests)
    fault = again.partition("could not be used: ")[2].partition(". Reply again")[0]
    assert fault
    assert "could not be used" not in first
    assert "Yes, it says so" not in again


@openai_only
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


@openai_only
@pytest.mark.parametrize(
    ("window", "limits"), [(4096, (6144, 3072, 8)), (32_768, (49_152, 24_000, 40))]
)
def test_the_window_decides_how_much_is_asked_at_once(server, judge_at, window, limits):
    judge = judge_at(server, context_window=window)

    assert (judge.max_context_chars, judge.max_answer_chars, judge.max_claims) == limits

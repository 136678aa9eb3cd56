"""What a reasoning model thought is no part of its answer, whichever way a case is made."""

import json

import pytest

from ragaliq import LocalJudge, RAGTestCase, evaluate
from ragaliq.core.thoughts import without_thoughts

ANSWER = "Refunds are paid within five days."
THOUGHTS = "The user asks about refunds. Perhaps they come in cash."

FORMS = {
    "DeepSeek, Qwen": f"<think>\n{THOUGHTS}\n</think>\n\n{ANSWER}",
    "an empty block": f"<think>\n\n</think>\n\n{ANSWER}",
    "the tag opened by the template": f"{THOUGHTS}\n</think>\n\n{ANSWER}",
    "thinking": f"<thinking>{THOUGHTS}</thinking>{ANSWER}",
    "Bedrock": f"<reasoning>{THOUGHTS}</reasoning>{ANSWER}",
    "Gemini": f"<thought>{THOUGHTS}</thought>{ANSWER}",
    "Seed": f"<seed:think>{THOUGHTS}</seed:think>{ANSWER}",
    "Magistral": f"[THINK]{THOUGHTS}[/THINK]{ANSWER}",
    "Kimi": f"◁think▷{THOUGHTS}◁/think▷{ANSWER}",
    "Command": f"<|START_THINKING|>{THOUGHTS}<|END_THINKING|>{ANSWER}",
    "Sky-T1": f"<|begin_of_thought|>{THOUGHTS}<|end_of_thought|>{ANSWER}",
    "Gemma": f"<|channel>thought\n{THOUGHTS}<channel|>{ANSWER}",
    "gpt-oss": (
        f"<|channel|>analysis<|message|>{THOUGHTS}<|end|><|start|>assistant<|channel|>final"
        f"<|message|>{ANSWER}<|return|>"
    ),
    "two blocks": f"<think>{THOUGHTS}</think>\n<think>{THOUGHTS}</think>\n{ANSWER}",
    "one inside another": f"<think>{THOUGHTS}<think>hm</think>{THOUGHTS}</think>{ANSWER}",
}


@pytest.mark.parametrize("form", FORMS)
def test_thoughts_are_cut_out_of_the_answer(form):
    assert without_thoughts(FORMS[form]) == ANSWER
    case = RAGTestCase(query="How?", context=[ANSWER], response=FORMS[form])
    assert case.response == ANSWER
    assert RAGTestCase.model_validate_json(case.model_dump_json()) == case


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{THOUGHTS}",
        f"[THINK]{THOUGHTS}",
        f"<|channel|>analysis<|message|>{THOUGHTS}",
        f"<seed:think>{THOUGHTS}",
    ],
)
def test_thoughts_without_an_end_are_no_answer(text):
    case = RAGTestCase(query="How?", context=[ANSWER], response=text)
    assert case.response == ""
    run = evaluate([case], judge=LocalJudge())
    assert run[0].results["faithfulness"].status == "empty_answer"


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"  {ANSWER}\n",
        "Write `<think>` before and `</think>` after it.",
        "Use it so:\n```\n<think>\nthis\n</think>\n```\nThat is all.",
        "See [think tanks] and [1], a < b and <b>bold</b>.",
        "He said [THINK again] and I think so.",
    ],
)
def test_what_only_looks_like_thoughts_stays(text):
    assert without_thoughts(text) == text


def test_rows_of_a_file_are_judged_without_thoughts(tmp_path):
    row = {"question": "How?", "contexts": [ANSWER], "answer": FORMS["DeepSeek, Qwen"]}
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(row))
    from ragaliq.datasets import read_cases

    (case,) = read_cases(path)
    result = evaluate([case], judge=LocalJudge())[0].results["faithfulness"]
    assert [claim.claim for claim in result.claims] == [ANSWER]
    assert result.score == 1.0

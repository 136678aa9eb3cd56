"""What made a score has a fingerprint, which changes with it and with nothing else."""

import subprocess
import sys

import pytest

from ragaliq import (
    ClaudeJudge,
    FaithfulnessEvaluator,
    HallucinationEvaluator,
    LocalJudge,
    RAGTestCase,
    ScoringPolicy,
    evaluate,
)

CASE = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")


def claude(**settings):
    return ClaudeJudge(**{"model": "claude-haiku-4-5", "api_key": "not-a-key"} | settings)


MADE_BY = {
    "the same": lambda: FaithfulnessEvaluator().fingerprint(claude()),
    "a metric": lambda: HallucinationEvaluator(0.7).fingerprint(claude()),
    "a threshold": lambda: FaithfulnessEvaluator(0.71).fingerprint(claude()),
    "a policy": lambda: FaithfulnessEvaluator(policy=ScoringPolicy.LIVE).fingerprint(claude()),
    "a strategy": lambda: FaithfulnessEvaluator(strategy="per_claim").fingerprint(claude()),
    "a model": lambda: FaithfulnessEvaluator().fingerprint(claude(model="claude-sonnet-4-5")),
    "a set of prompts": lambda: FaithfulnessEvaluator().fingerprint(claude(prompts="v1")),
    "a judge": lambda: FaithfulnessEvaluator().fingerprint(LocalJudge()),
}


def test_each_change_gives_another_fingerprint_and_none_gives_the_same():
    made = [FaithfulnessEvaluator().fingerprint(claude()), *(make() for make in MADE_BY.values())]

    assert len(set(made)) == len(MADE_BY)
    assert made[0] == made[1]
    changed_later = FaithfulnessEvaluator()
    changed_later.fingerprint(claude())
    changed_later.threshold = 0.71
    assert changed_later.fingerprint(claude()) == MADE_BY["a threshold"]()


def test_a_changed_prompt_file_changes_it(tmp_path):
    path = tmp_path / "relevance.md"
    made = []
    for text in ("Grade it.", "Grade it strictly."):
        path.write_text(f"---\nversion: mine\n---\n{text} {{{{ question }}}} {{{{ answer }}}}")
        made.append(FaithfulnessEvaluator().fingerprint(claude(prompts={"relevance": path})))

    assert len({*made, FaithfulnessEvaluator().fingerprint(claude())}) == 3


def test_another_process_gives_the_same():
    code = (
        "from ragaliq import FaithfulnessEvaluator, LocalJudge\n"
        "print(FaithfulnessEvaluator().fingerprint(LocalJudge()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == FaithfulnessEvaluator().fingerprint(LocalJudge())


@pytest.mark.parametrize("executor", [0, 1])
def test_results_carry_it_and_what_the_judge_is(executor):
    [evaluation] = evaluate([CASE], metrics=["faithfulness"], processes=executor)
    result = evaluation.results["faithfulness"]

    evaluator = FaithfulnessEvaluator(policy=ScoringPolicy.LIVE)
    assert result.fingerprint == evaluator.fingerprint(LocalJudge())
    assert result.judge_kind == "code"

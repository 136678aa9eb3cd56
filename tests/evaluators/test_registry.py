import pytest

from ragaliq import (
    ConfigurationError,
    Evaluator,
    FaithfulnessEvaluator,
    JudgeUsage,
    RAGTestCase,
    RelevanceEvaluator,
    ScoringPolicy,
    get_evaluator,
    register_evaluator,
)
from ragaliq.evaluators import registry, resolve_evaluators
from ragaliq.testing import PlainScriptedJudge


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"chunk_utility, citations, .*relevance"):
        get_evaluator("truthiness")


@pytest.mark.parametrize(
    ("name", "threshold", "word"),
    [
        ("faithfulness", 0.7, "context"),
        ("hallucination", 0.8, "grounded"),
        ("relevance", 0.7, "question"),
    ],
)
def test_the_documented_metrics_have_the_documented_attributes(name, threshold, word):
    kind = get_evaluator(name)
    evaluator = kind()
    assert (evaluator.name, evaluator.threshold) == (name, threshold)
    assert word in evaluator.description
    assert repr(kind(threshold=0.85)) == f"{kind.__name__}(threshold=0.85)"


def test_an_evaluator_of_the_users_own_is_found_by_name(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))

    @register_evaluator("brevity")
    class Brevity(Evaluator):
        async def measure(self, test_case, judge):
            score = 1.0 if len(test_case.response) < 20 else 0.0
            return self.result(judge, score=score, reasoning="Counted.", usage=JudgeUsage())

    (evaluator,) = resolve_evaluators(["brevity"])
    case = RAGTestCase(query="q", response="short")
    assert evaluator.evaluate_sync(case, PlainScriptedJudge()).score == 1.0
    assert [each.name for each in resolve_evaluators("brevity")] == ["brevity"]
    with pytest.raises(ConfigurationError, match="already taken"):
        register_evaluator("brevity")(type("Other", (Brevity,), {}))


@pytest.mark.parametrize("specs", [[], ["faithfulness", FaithfulnessEvaluator], [42]])
def test_unusable_choices_are_refused(specs):
    with pytest.raises(ConfigurationError):
        resolve_evaluators(specs)


def test_an_evaluators_own_policy_wins_over_the_callers():
    own = FaithfulnessEvaluator(policy=ScoringPolicy.RAGAS)
    plain = RelevanceEvaluator()
    resolved = resolve_evaluators([own, plain], policy=ScoringPolicy.LIVE)
    assert [each.policy.name for each in resolved] == ["ragas", "live"]
    again = resolve_evaluators(resolved, policy=ScoringPolicy.RAG_EVALS)
    assert [each.policy.name for each in again] == ["ragas", "live"]
    assert plain.policy is ScoringPolicy.RAGALIQ

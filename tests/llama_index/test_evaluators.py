"""ragaliq's metrics behind LlamaIndex's evaluator interface."""

import pytest
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.evaluation import BaseEvaluator, BatchEvalRunner, EvaluationResult
from llama_index.core.prompts import PromptTemplate

from llama_index.evaluation.ragaliq import (
    ChunkUtilityEvaluator,
    ContextPrecisionEvaluator,
    ContextRecallEvaluator,
    CorrectnessEvaluator,
    FaithfulnessEvaluator,
    HallucinationEvaluator,
    RagaliqEvaluationResult,
    RelevancyEvaluator,
)
from ragaliq import (
    ConfigurationError,
    JudgeAPIError,
    JudgeRefusalError,
    ScoringPolicy,
    Status,
)

QUESTION = "How long do refunds take?"
CONTEXTS = ["Refunds take five days.", "The shop opens at nine."]
SUPPORTED = "Refunds take five days."
MIXED = "Refunds take five days. Refunds are free."
EVALUATORS = [FaithfulnessEvaluator, HallucinationEvaluator, RelevancyEvaluator]


@pytest.mark.parametrize(
    ("evaluator_class", "threshold"),
    [(FaithfulnessEvaluator, 0.7), (HallucinationEvaluator, 0.8), (RelevancyEvaluator, 0.7)],
)
def test_they_are_llama_index_evaluators_with_llama_index_results(
    evaluator_class, threshold, judge
):
    evaluator = evaluator_class(judge)
    assert evaluator.threshold == threshold
    result = evaluator.evaluate(QUESTION, SUPPORTED, CONTEXTS)
    assert isinstance(evaluator, BaseEvaluator)
    assert isinstance(result, EvaluationResult)
    assert (result.passing, result.invalid_result, result.invalid_reason) == (True, False, None)
    assert (result.query, result.response, result.contexts) == (QUESTION, SUPPORTED, CONTEXTS)


def test_the_result_keeps_claims_status_cost_and_threshold(judge):
    result = FaithfulnessEvaluator(judge, threshold=0.6).evaluate(QUESTION, MIXED, CONTEXTS)
    assert isinstance(result, RagaliqEvaluationResult)
    assert (result.score, result.passing, result.threshold) == (0.5, False, 0.6)
    assert [claim.verdict for claim in result.claims] == ["SUPPORTED", "NOT_ENOUGH_INFO"]
    assert (result.evaluator_name, result.status) == ("faithfulness", Status.SCORED)
    assert (result.usage.total_tokens, result.judge) == (12, "sentences")


def test_the_feedback_names_the_claims_that_are_not_supported(judge):
    result = FaithfulnessEvaluator(judge).evaluate(QUESTION, MIXED, CONTEXTS)
    first, *rest = result.feedback.splitlines()
    assert first == "1 of 2 claims supported by the context."
    assert [line.split(":")[0] for line in rest] == ["NOT_ENOUGH_INFO"]
    assert "Refunds are free." in rest[0]
    assert "nowhere to be found" in rest[0]


@pytest.mark.parametrize("settings", [{"threshold": 2.0}, {"strategy": "guess"}])
def test_a_wrong_setting_is_refused_when_the_evaluator_is_built(judge, settings):
    with pytest.raises(ConfigurationError):
        FaithfulnessEvaluator(judge, **settings)


@pytest.mark.parametrize(
    ("evaluator_class", "given", "missing"),
    [
        (FaithfulnessEvaluator, {"query": QUESTION, "contexts": CONTEXTS}, "response"),
        (FaithfulnessEvaluator, {"response": SUPPORTED}, "contexts"),
        (FaithfulnessEvaluator, {}, "response and contexts"),
        (HallucinationEvaluator, {"response": " ", "contexts": CONTEXTS}, "response"),
        (RelevancyEvaluator, {"response": SUPPORTED, "contexts": CONTEXTS}, "query"),
    ],
)
async def test_missing_inputs_make_an_invalid_result_and_no_call(
    evaluator_class, given, missing, judge
):
    for result in (
        evaluator_class(judge).evaluate(**given),
        await evaluator_class(judge).aevaluate(**given),
    ):
        assert (result.invalid_result, result.score, result.passing) == (True, None, None)
        assert result.invalid_reason.endswith(f"needs {missing}")
        assert result.query == given.get("query")
        assert result.contexts == given.get("contexts", [])
    assert judge.calls == 0


def test_an_empty_context_has_no_score(judge):
    result = FaithfulnessEvaluator(judge).evaluate(QUESTION, SUPPORTED, [])
    assert (result.invalid_result, result.score, result.status) == (True, None, Status.NO_CONTEXT)
    assert result.invalid_reason.startswith("no_context: ")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (JudgeRefusalError("refused"), Status.JUDGE_REFUSED),
        (JudgeAPIError("503"), Status.JUDGE_ERROR),
        (RuntimeError("leaks: Refunds are free."), Status.JUDGE_ERROR),
    ],
)
@pytest.mark.parametrize("evaluator_class", EVALUATORS)
@pytest.mark.parametrize("policy", [ScoringPolicy.LIVE, ScoringPolicy.RAGALIQ])
async def test_a_judge_that_fails_makes_an_invalid_result_under_every_policy(
    evaluator_class, error, status, policy, judge_class
):
    evaluator = evaluator_class(judge_class(error=error), policy=policy)
    for result in (
        evaluator.evaluate(QUESTION, MIXED, CONTEXTS),
        await evaluator.aevaluate(QUESTION, MIXED, CONTEXTS),
    ):
        assert (result.invalid_result, result.score, result.passing) == (True, None, None)
        assert result.error_type == type(error).__name__
        if policy is ScoringPolicy.LIVE:
            assert result.status is status
        assert "free" not in result.invalid_reason


@pytest.mark.parametrize(
    "make",
    [
        lambda nodes: Response(SUPPORTED, source_nodes=nodes),
        lambda nodes: StreamingResponse(iter(["Refunds take ", "five days."]), source_nodes=nodes),
        lambda nodes: AgentChatResponse(SUPPORTED, source_nodes=nodes),
    ],
)
async def test_responses_are_judged_against_what_the_model_saw(make, nodes, judge):
    found = nodes(*CONTEXTS, source="policy.md")
    evaluator = FaithfulnessEvaluator(judge)
    for result in (
        evaluator.evaluate_response(QUESTION, make(found)),
        await evaluator.aevaluate_response(query=QUESTION, response=make(found)),
    ):
        assert (result.response, result.score) == (SUPPORTED, 1.0)
        assert result.contexts[0] == "source: policy.md\n\nRefunds take five days."
        assert result.claims[0].supporting_chunk_ids == ("n0",)


async def tokens():
    yield "Refunds take "
    yield "five days."


async def test_an_asynchronous_stream_is_read_to_its_end_and_keeps_its_text(nodes, judge):
    response = AsyncStreamingResponse(tokens(), source_nodes=nodes(*CONTEXTS))
    result = await FaithfulnessEvaluator(judge).aevaluate_response(QUESTION, response)
    assert (result.response, result.score) == (SUPPORTED, 1.0)
    assert await response.get_response() == Response(SUPPORTED, response.source_nodes, None)


def test_an_asynchronous_stream_can_be_evaluated_synchronously(nodes, judge):
    response = AsyncStreamingResponse(tokens(), source_nodes=nodes(*CONTEXTS))
    assert FaithfulnessEvaluator(judge).evaluate_response(QUESTION, response).score == 1.0


def test_a_structured_answer_is_judged_field_by_field(nodes, judge):
    class Refund(BaseModel):
        days: int

    response = PydanticResponse(Refund(days=5), source_nodes=nodes(*CONTEXTS))
    result = RelevancyEvaluator(judge).evaluate_response(QUESTION, response)
    assert (result.response, result.score) == ("days: 5", 0.9)


async def test_a_response_that_cannot_be_read_makes_an_invalid_result(nodes, judge):
    def broken():
        yield "Refunds"
        raise ConnectionError("gone")

    evaluator = FaithfulnessEvaluator(judge)
    for result in (
        evaluator.evaluate_response(QUESTION, StreamingResponse(broken())),
        await evaluator.aevaluate_response(QUESTION, StreamingResponse(broken())),
        evaluator.evaluate_response(QUESTION, None),
    ):
        assert (result.invalid_result, result.score) == (True, None)


def test_prompts_belong_to_the_judge(judge):
    evaluator = FaithfulnessEvaluator(judge)
    evaluator.update_prompts({})
    assert evaluator.get_prompts() == {}
    with pytest.raises(ConfigurationError, match="no prompt eval_template"):
        evaluator.update_prompts({"eval_template": PromptTemplate("{query_str}")})


def test_correctness_compares_the_answer_with_the_reference_both_ways(judge):
    evaluator = CorrectnessEvaluator(judge)
    good = evaluator.evaluate(QUESTION, SUPPORTED, reference="Refunds take five days.")
    assert (good.evaluator_name, good.score, good.passing) == ("correctness", 1.0, True)

    half = evaluator.evaluate(QUESTION, MIXED, reference=["Refunds take five days."])
    assert half.score == pytest.approx(2 / 3)  # one confirmed, one not, nothing missing

    missing = evaluator.evaluate(QUESTION, SUPPORTED)
    assert missing.invalid_result
    assert "needs reference" in missing.invalid_reason


def test_context_recall_counts_the_facts_of_the_reference_that_the_contexts_cover(judge):
    facts = ["Refunds take five days.", "Refunds are free."]
    result = ContextRecallEvaluator(judge).evaluate(contexts=CONTEXTS, reference=facts)
    assert (result.evaluator_name, result.score) == ("context_recall", 0.5)
    assert ContextRecallEvaluator(judge).evaluate(reference=facts).invalid_result


def test_context_precision_and_chunk_utility_look_at_the_contexts():
    precision = ContextPrecisionEvaluator("local").evaluate(QUESTION, contexts=CONTEXTS)
    assert precision.score == 1.0  # the chunk that helps comes first
    swapped = ContextPrecisionEvaluator("local").evaluate(QUESTION, contexts=CONTEXTS[::-1])
    assert swapped.score == 0.5
    utility = ChunkUtilityEvaluator("local").evaluate(QUESTION, SUPPORTED, CONTEXTS)
    assert utility.score == 0.5  # one chunk of two was used


def test_relevancy_falls_with_contexts_that_have_nothing_to_do_with_the_question():
    evaluator = RelevancyEvaluator("local")
    alone = evaluator.evaluate(QUESTION, SUPPORTED)
    fitting = evaluator.evaluate(QUESTION, SUPPORTED, CONTEXTS)
    astray = evaluator.evaluate(QUESTION, SUPPORTED, ["The cat is black."])
    assert alone.score >= fitting.score > astray.score == 0.0
    assert fitting.usage.requests >= alone.usage.requests
    assert "best chunk" in astray.feedback


@pytest.mark.parametrize("reference", [42, [object()]])
def test_a_reference_that_is_no_text_is_an_invalid_result(judge, reference):
    result = CorrectnessEvaluator(judge).evaluate(QUESTION, SUPPORTED, reference=reference)
    assert result.invalid_result
    assert result.invalid_reason.startswith("malformed input")


@pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")
async def test_a_batch_runner_gives_each_answer_its_own_reference(judge):
    runner = BatchEvalRunner({"correctness": CorrectnessEvaluator(judge)})
    results = await runner.aevaluate_response_strs(
        queries=[QUESTION, QUESTION],
        response_strs=[SUPPORTED, SUPPORTED],
        contexts_list=[CONTEXTS, CONTEXTS],
        reference=["Refunds take five days.", "The moon is made of cheese."],
    )
    assert [result.score for result in results["correctness"]] == [1.0, 0.0]

"""An entailment judge around a function; models are tried in tests/entailment."""

import asyncio
import sys
import threading
import time

import pytest

from ragaliq import (
    ConfigurationError,
    FaithfulnessEvaluator,
    JudgeAPIError,
    JudgeResponseError,
    RAGTestCase,
    ScoringPolicy,
    Status,
)
from ragaliq.judges.small import EntailmentJudge

CHUNKS = ["The lamp weighs 3 kg.", "Refunds take five days.", "The shop is in Graz."]


def contains(pairs):
    return [0.9 if claim.strip(".") in premise else 0.1 for premise, claim in pairs]


async def test_the_clearest_chunk_is_named():
    reply = await EntailmentJudge(contains).verify_claims(
        ["The shop is in Graz.", "The lamp is red."], CHUNKS
    )
    first, second = reply.verdicts
    assert (first.verdict, first.confidence) == ("SUPPORTED", 0.9)
    assert first.supporting_chunk_ids == [2]
    assert (second.verdict, second.confidence) == ("NOT_ENOUGH_INFO", 0.9)
    assert second.supporting_chunk_ids == []
    assert reply.usage.cost_usd == 0.0


async def test_the_best_window_counts():
    long = [" ".join(f"Sentence number {i} says nothing." for i in range(30)) + " Ada won."]
    seen = []

    def watched(pairs):
        seen.extend(pairs)
        return contains(pairs)

    verdict = await EntailmentJudge(watched, max_tokens=40).verify_claim("Ada won.", long)
    assert verdict.verdict == "SUPPORTED"
    assert len(seen) == 2  # the two that share most words with the claim
    assert all(len(f"{premise} {claim}".split()) <= 40 for premise, claim in seen)


async def test_a_claim_that_leaves_no_room_has_no_verdict():
    judge = EntailmentJudge(contains, max_tokens=40)
    claims = ["Ada won.", "word " * 30]
    reply = await judge.verify_claims(claims, CHUNKS)
    assert [verdict.index for verdict in reply.verdicts] == [0]
    with pytest.raises(JudgeResponseError, match="1 of 1 claims"):
        await judge.verify_claim(claims[1], CHUNKS)
    with pytest.raises(JudgeResponseError, match="1 of 2 claims, which are longer than half of"):
        await judge.grade_statements("q", f"Ada won. The {claims[1]}.", CHUNKS)


async def test_an_empty_context_asks_no_model():
    judge = EntailmentJudge(lambda pairs: 1 / 0)
    verdict = await judge.verify_claim("Ada won.", ["", " "])
    assert (verdict.verdict, verdict.confidence) == ("NOT_ENOUGH_INFO", 1.0)


async def test_an_answer_is_scored_claim_by_claim():
    case = RAGTestCase(
        query="How heavy is it?",
        context=CHUNKS,
        response="The lamp weighs 3 kg. The lamp is made of gold.",
    )
    result = await FaithfulnessEvaluator().evaluate(case, EntailmentJudge(contains))
    assert result.score == 0.5
    assert [claim.decided_by for claim in result.claims] == ["entailment"] * 2
    one_pass = FaithfulnessEvaluator(strategy="single_pass")
    assert (await one_pass.evaluate(case, EntailmentJudge(contains))).score == 0.5


async def test_a_model_that_fails_is_a_failure_and_quotes_nothing():
    def broken(pairs):
        raise RuntimeError(f"out of memory for {pairs}")

    case = RAGTestCase(query="q", context=CHUNKS, response="Zanzibar is far away.")
    result = await FaithfulnessEvaluator(policy=ScoringPolicy.LIVE).evaluate(
        case, EntailmentJudge(broken)
    )
    assert result.status is Status.JUDGE_ERROR
    assert "RuntimeError" in result.error
    assert "Zanzibar" not in result.error
    with pytest.raises(JudgeAPIError) as raised:
        await EntailmentJudge(broken).verify_claim("Zanzibar.", CHUNKS)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("scores", [[0.5], [1.5, 0.5], [float("nan"), 0.5]])
async def test_scores_that_cannot_be_right_are_an_error(scores):
    with pytest.raises(JudgeResponseError):
        await EntailmentJudge(lambda pairs: scores).verify_claims(["A.", "B."], ["Text."])


async def test_the_model_works_off_the_event_loop_and_on_one_thread_at_a_time():
    threads, active, most = set(), [], []

    def model(pairs):
        threads.add(threading.get_ident())
        active.append(1)
        most.append(len(active))
        time.sleep(0.001)
        active.pop()
        return [0.9] * len(pairs)

    judge = EntailmentJudge(model)
    await asyncio.gather(*(judge.verify_claim(f"Claim {i}.", ["Text."]) for i in range(8)))
    assert threading.get_ident() not in threads
    assert max(most) == 1


async def test_windows_that_share_no_word_are_read_only_where_the_others_leave_it_open():
    pairs = []

    def watched(given):
        pairs.extend(given)
        return contains(given)

    chunks = [f"Room {i} is empty. " * 12 for i in range(20)] + ["The shop is in Graz."]
    judge = EntailmentJudge(watched, max_tokens=60)
    verdict = await judge.verify_claim("The shop is in Graz.", chunks)
    assert (verdict.verdict, verdict.supporting_chunk_ids) == ("SUPPORTED", [20])
    few = len(pairs)
    pairs.clear()
    assert (await judge.verify_claim("The shop is new.", chunks)).verdict == "NOT_ENOUGH_INFO"
    assert few <= 4
    assert len(pairs) > 15  # every window, before anything is called unsupported


@pytest.mark.parametrize(
    ("model", "settings", "says"),
    [
        (contains, {"threshold": 1.0}, "threshold"),
        (contains, {"labels": ["SUPPORTED"]}, "not for a function"),
        (contains, {"threads": 0}, "threads"),
        (contains, {"path": "x"}, "path goes with a preset: factcg"),
        (7, {}, "got int"),
        ("", {}, "takes a preset"),
        ("nowhere/model", {}, r"no folder nowhere/model; .*download=True"),
        ("factcg", {}, "download yaxili96/FactCG"),
    ],
)
def test_a_setting_that_is_wrong_is_named(model, settings, says):
    with pytest.raises(ConfigurationError, match=says):
        EntailmentJudge(model, **settings)


def test_a_missing_extra_is_named_with_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigurationError, match=r"needs torch.*ragaliq\[entailment\]"):
        EntailmentJudge(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    file = tmp_path / "model.onnx"
    file.write_bytes(b"")
    with pytest.raises(ConfigurationError, match=r"needs onnxruntime.*\[entailment-onnx\]"):
        EntailmentJudge(file)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("minicheck-flan-t5", "reads the first word of a T5"),
        ("hhem-2.1-open", "reads the first token"),
        ("vectara/hallucination_evaluation_model", "reads the first token"),
        ("alignscore", "reads a layer of the authors' own"),
        ("lettucedetect-base", "classifies tokens"),
        ("tinylettuce-17m", "classifies tokens"),
        ("granite-guardian-3.3", "is asked on a server"),
        ("bespoke-minicheck-7b", "is asked on a server"),
        ("paladin-mini", "is asked on a server"),
    ],
)
def test_a_model_of_another_kind_is_refused_with_what_to_use(name, kind):
    with pytest.raises(ConfigurationError, match=f"{kind}.* use one of factcg, .*a function"):
        EntailmentJudge(name)
    with pytest.raises(ConfigurationError, match=f"{kind}.*; use one of factcg, .*or a folder"):
        EntailmentJudge.named(f"entailment:{name}")


def test_a_subclass_is_not_made_anew_in_another_process():
    class Careful(EntailmentJudge):
        """Decides otherwise."""

    assert Careful(contains).plan is None
    assert EntailmentJudge(contains).plan is None

"""`redact_for_judge`: the judge sees replaced texts only, and still finds its evidence in them."""

import json

import pytest

from ragaliq import (
    CircuitBreaker,
    Citation,
    ConfigurationError,
    ContextChunk,
    JudgeAPIError,
    Monitor,
    RAGTestCase,
    RunInfo,
    Scorer,
    Turn,
    evaluate,
)
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(
    name="Anna's order",
    query="What did Anna order?",
    context=[ContextChunk(text="Anna ordered a lamp.", id="order"), "Lamps weigh 310 grams."],
    response="Anna ordered a lamp.",
    expected_answer="Anna ordered a lamp.",
    expected_facts=["Anna ordered a lamp."],
)
METRICS = ["faithfulness", "relevance", "context_precision", "context_recall"]


def by_evaluate(judge, redact):
    return evaluate([CASE], judge=judge, metrics=METRICS, redact_for_judge=redact)[0]


def by_monitor(judge, redact):
    found = []
    with Monitor(
        judge=judge,
        metrics=METRICS,
        redact_for_judge=redact,
        on_result=found.append,
        breaker=CircuitBreaker(failures=1),
    ) as monitor:
        monitor.submit(CASE)
        assert monitor.flush(10.0)
        assert monitor.stats().breaker == "closed"
    return found[0]


class Seeing(ScriptedJudge):
    """Keeps all that it is asked about."""

    def __init__(self):
        super().__init__()
        self.seen = []

    async def extract_statements(self, query, response):
        self.seen += [query, response]
        return await super().extract_statements(query, response)

    async def verify_claims(self, claims, context):
        self.seen += [*claims, *context]
        return await super().verify_claims(claims, context)

    async def evaluate_relevance(self, query, response):
        self.seen += [query, response]
        return await super().evaluate_relevance(query, response)


doors = pytest.mark.parametrize("door", [by_evaluate, by_monitor])


@doors
def test_the_judge_sees_replaced_texts_only_and_its_evidence_is_found_in_them(door):
    judge, kinds = Seeing(), set()

    def redact(text, kind):
        kinds.add(kind)
        return text.replace("Anna", "[PERSON]")

    evaluation = door(judge, redact)
    assert judge.seen
    assert "Anna" not in json.dumps(judge.seen)
    assert kinds == {"question", "chunk", "answer"}
    result = evaluation.results["faithfulness"]
    assert (result.score, result.claims[0].claim) == (1.0, "[PERSON] ordered a lamp.")
    assert result.claims[0].evidence_verified
    assert result.claims[0].evidence_spans[0].chunk_id == "order"
    assert evaluation.results["context_recall"].score == 1.0
    assert "Anna" not in evaluation.case.model_dump_json()
    assert "Anna" not in str(evaluation)


@doors
def test_where_it_raises_nothing_is_sent_and_no_text_is_in_the_result(door):
    def redact(text, kind):
        if kind == "answer":
            raise ValueError(text)
        return text

    judge = Seeing()
    evaluation = door(judge, redact)
    assert judge.seen == []
    assert {result.status for result in evaluation.results.values()} == {"judge_error"}
    result = evaluation.results["faithfulness"]
    assert (result.error_type, result.score) == ("RedactionError", None)
    assert result.error == "redact_for_judge raised ValueError: nothing was sent"
    assert "Anna" not in evaluation.case.model_dump_json() + str(evaluation)


@doors
def test_none_empties_a_text(door):
    evaluation = door(ScriptedJudge(), lambda text, kind: None if kind == "answer" else text)
    assert evaluation.results["faithfulness"].status == "empty_answer"
    assert (evaluation.case.response, evaluation.case.query) == ("", CASE.query)


class Anonymised:
    """As libraries return it: with the text and what was found in it."""

    def __repr__(self):
        return "Anonymised(Anna)"


def test_what_is_no_text_is_not_sent_and_shown_nowhere(recwarn):
    judge = Seeing()
    for each in (judge, "local"):
        evaluation = by_monitor(each, lambda text, kind: Anonymised())
        error = "redact_for_judge returned a Anonymised: nothing was sent"
        assert evaluation.results["faithfulness"].error == error
        assert "Anna" not in evaluation.case.model_dump_json()
    assert (judge.seen, list(recwarn)) == ([], [])


def test_a_result_that_the_breaker_made_shows_replaced_texts_too():
    down = JudgeAPIError("down")
    judge = ScriptedJudge(failures={"evaluate_relevance": down})
    found = []
    with Monitor(
        judge=judge,
        metrics=["relevance"],
        redact_for_judge=lambda text, kind: text.replace("Anna", "[PERSON]"),
        on_result=found.append,
        breaker=CircuitBreaker(failures=1),
    ) as monitor:
        for _ in range(2):
            monitor.submit(CASE)
            assert monitor.flush(10.0)
        assert monitor.stats().unjudged == 1
    assert len(found) == 2
    assert all("Anna" not in each.case.model_dump_json() for each in found)


def test_what_is_no_function_is_refused():
    with pytest.raises(ConfigurationError, match="redact_for_judge must be a function"):
        Monitor(judge=ScriptedJudge(), redact_for_judge="presidio")


@pytest.mark.parametrize("raises", [False, True])
def test_every_text_of_a_case_is_replaced(raises):
    def redact(text, kind):
        if raises:
            raise ValueError(text)
        return text.replace("Anna", "X")

    case = RAGTestCase(
        **{name: value for name, value in CASE if name != "id"}
        | {
            "prompt_context": "Anna's orders",
            "history": [Turn(role="user", text="I am Anna.", context=["Anna is a guest."])],
            "citations": [Citation(start=0, end=4, quote="Anna", source="Anna's order")],
            "run": RunInfo(run_id="r"),
        }
    )
    # Labels, which no judge sees.
    labels = {"id", "tags", "metadata", "sources", "run"}
    assert {name for name, value in case if "Anna" in str(value)} | labels == set(
        RAGTestCase.model_fields
    )
    redacted = Scorer(ScriptedJudge(), redact_for_judge=redact).redacted(case)
    assert "Anna" not in redacted.model_dump_json()

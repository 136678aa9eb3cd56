"""What is measured by default: the judge's default metrics."""

from unittest.mock import MagicMock

import pyarrow as pa
import pytest

from ragaliq import (
    CascadeJudge,
    LLMJudge,
    LocalJudge,
    Monitor,
    OnTag,
    RAGTestCase,
    RelevanceEvaluator,
    Sampling,
    evaluate,
    score_batch,
    score_batch_schema,
)
from ragaliq.evaluators import metrics, resolve_evaluators
from ragaliq.judges.small import EntailmentJudge
from ragaliq.scoring.scorer import Scorer
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge
from ragaliq.worker.pending import PendingJob
from ragaliq.worker.runs_file import RunsFile

CASE = RAGTestCase(query="When?", context=["Refunds take a day."], response="Refunds take a day.")
FAITHFULNESS = ["faithfulness"]
BOTH = ["faithfulness", "relevance"]


class NoRelevance(PlainScriptedJudge):
    default_metrics = ("faithfulness",)

    def __len__(self):  # a judge that counts as false is a judge
        return 0


def entailment():
    return EntailmentJudge(lambda pairs: [0.9] * len(pairs))


@pytest.mark.parametrize(
    ("judge", "measured"),
    [
        (LocalJudge(), FAITHFULNESS),
        (LocalJudge(embed=lambda texts: [[1.0]] * len(texts)), BOTH),
        (entailment(), FAITHFULNESS),
        (ScriptedJudge(), BOTH),
        (PlainScriptedJudge(), BOTH),
        (MagicMock(spec=LLMJudge), BOTH),
        (NoRelevance(), FAITHFULNESS),
        (CascadeJudge(LocalJudge(), ScriptedJudge()), BOTH),
        (CascadeJudge(LocalJudge(), entailment()), FAITHFULNESS),
        (CascadeJudge(LocalJudge(), entailment(), ScriptedJudge()), BOTH),
    ],
)
def test_the_judge_that_would_score_relevance_says_whether_it_is_measured(judge, measured):
    assert [each.name for each in resolve_evaluators(None, judge=judge)] == measured


@pytest.mark.parametrize(("judge", "measured"), [("local", FAITHFULNESS), (ScriptedJudge(), BOTH)])
def test_every_entry_point_measures_the_default_metrics(judge, measured):
    assert list(evaluate([CASE], judge=judge).metrics) == measured
    with Monitor(judge=judge) as monitor:
        assert [each.name for each in monitor.metrics] == measured
    rows = pa.table({"question": ["q"], "answer": ["a"], "contexts": [["c"]]})
    added = score_batch(rows, judge=judge).schema.names[3:]
    assert added == score_batch_schema(judge=judge).names
    assert [name.removesuffix("_score") for name in added if name.endswith("_score")] == measured


def test_a_schema_needs_no_judge_where_the_metrics_are_given():
    names = score_batch_schema(metrics=["relevance"], judge="no such judge").names
    assert names[0] == "relevance_score"


@pytest.mark.parametrize(("judge", "measured"), [("local", FAITHFULNESS), (ScriptedJudge(), BOTH)])
async def test_runs_that_are_enqueued_without_metrics_get_the_workers(tmp_path, judge, measured):
    address = f"sqlite:///{tmp_path}/runs.db"
    with Monitor(executor=address, sampling=Sampling(rules=[OnTag("t")], rate=0.0)) as monitor:
        assert monitor.metrics == ()
        assert monitor.submit(CASE.model_copy(update={"tags": ["t"]}))
        assert not monitor.submit(CASE)
    scorer = Scorer(judge, sinks=[address], waits_for_sinks=True)
    evaluations = [each async for each in PendingJob(RunsFile(address), scorer)]
    assert [list(each.results) for each in evaluations] == [measured]


@pytest.fixture
def warnings_seen(caplog, monkeypatch):
    monkeypatch.setattr(metrics, "_LOG_ONCE", metrics.LogOnce(metrics.logging.getLogger("r")))
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(("judge", "name"), [(LocalJudge(), "local"), (entailment(), "entailment")])
def test_relevance_of_a_judge_that_is_weak_at_it_warns_once(judge, name, warnings_seen):
    for _ in range(2):
        run = evaluate([CASE], metrics=BOTH, judge=judge)
    assert list(run.metrics) == BOTH
    (warning,) = warnings_seen()
    assert warning.startswith(f"judge '{name}' is weak at relevance")
    assert warning.endswith("use an LLM judge for it")


@pytest.mark.parametrize("judge", [ScriptedJudge(), MagicMock(spec=LLMJudge)])
def test_relevance_of_any_other_judge_does_not_warn(judge, warnings_seen):
    RelevanceEvaluator().require(judge)
    evaluate([CASE], judge="local")
    assert warnings_seen() == []

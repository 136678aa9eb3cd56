"""An application's own way to decline is a status, not a score."""

import pytest

from ragaliq import LocalJudge, Monitor, RAGTestCase, ScoringPolicy, evaluate
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators import FaithfulnessEvaluator

OWN = ("Ask the front desk!", "/nothing on .{1,40} in our files/")


def case(response, **fields):
    context = ["Refunds take five days."]
    return RAGTestCase(query="When?", context=context, response=response, **fields)


@pytest.mark.parametrize(
    ("answer", "is_declined"),
    [
        ("Ask the front desk!", True),
        ("**ask the  front desk**", True),
        ("Nothing on refunds in our files.", False),  # the pattern has no full stop
        ("Nothing on refunds in our files", True),
        ("Hello! Ask the front desk! Is there anything else I can do?", True),
        ("Ask the front desk! Refunds take nine days.", False),
        ("The front desk asks.", False),
    ],
)
def test_a_text_or_pattern_of_the_application_is_a_decline(answer, is_declined):
    run = evaluate([case(answer)], judge="local", declines=OWN)
    assert (run[0].results["faithfulness"].status == "answer_refused") is is_declined


@pytest.mark.parametrize("policy", [ScoringPolicy.RAGALIQ, ScoringPolicy.LIVE])
async def test_evaluators_take_them_with_their_policy(policy):
    metric = FaithfulnessEvaluator(policy=policy.with_declines(OWN))
    assert (await metric.evaluate(case(OWN[0]), LocalJudge())).status == "answer_refused"


def test_a_monitor_takes_them():
    monitor = Monitor(judge="local", declines=OWN[0], mode="inline", executor="thread")
    assert monitor.submit(case(OWN[0], id="1"))
    monitor.flush()
    assert [each.policy.declines for each in monitor.metrics] == [(OWN[0],)]


@pytest.mark.parametrize("wrong", ["", "  ", "/(/", "//", 5])
def test_a_wrong_one_is_refused_at_once(wrong):
    with pytest.raises(ConfigurationError, match="declines"):
        evaluate([case("Yes.")], judge="local", declines=[wrong])

"""The plugin in runs of its own."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from ragaliq.errors import ConfigurationError
from ragaliq.pytest_plugin.assertion import RagSession

pytest_plugins = ["pytester"]

PRICED = """
import pytest
from ragaliq import JudgeUsage
from ragaliq.judges.base import ClaimsResult, ClaimVerdict, JudgeResult, LLMJudge

class Priced(LLMJudge):
    name = "priced"
    async def extract_claims(self, response):
        return ClaimsResult(claims=["one"], usage=JudgeUsage(requests=1, cost_usd={cost}))
    async def verify_claim(self, claim, context):
        return ClaimVerdict(verdict="SUPPORTED", usage=JudgeUsage())
    async def evaluate_relevance(self, query, response):
        return JudgeResult(score=1.0, reasoning="")

@pytest.fixture(scope="session")
def priced():
    return Priced()
"""


@pytest.mark.parametrize(
    "wrong", ["judge='gpt'", "faithfulnes=0.8", "correctness=0.8", "faithfulness=0.8"]
)
def test_a_failing_test_shows_its_own_lines_and_none_of_the_library(run_pytest, wrong):
    done = run_pytest(f"def test_bad():\n    assert_rag(BAD, {wrong})\n")
    assert "1 failed" in done.stdout
    assert not re.search(r"ragaliq/\w+/\w+\.py:\d+", done.stdout)


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ("'local'", "takes judge=... and model=..., not 'local'"),
        ("judg='local'", "not judg="),
        ("judge='gpt'", "no judge 'gpt'"),
    ],
)
@pytest.mark.parametrize("fixture", ["", "rag_judge"])
def test_a_wrong_marker_fails_its_test_in_one_line(run_pytest, marker, says, fixture):
    done = run_pytest(f"@pytest.mark.rag({marker})\ndef test_it({fixture}):\n    pass\n")
    assert says in done.stdout
    assert not re.search(r"\w\.py:\d+", done.stdout)


def test_a_failing_answer_fails_its_test_and_the_summary_counts_it(run_pytest):
    done = run_pytest(
        """
        def test_good(rag_judge):
            assert_rag(GOOD, faithfulness=0.9)

        def test_bad(rag_judge):
            assert_rag(BAD, faithfulness=0.9)
        """
    )
    assert "1 failed, 1 passed" in done.stdout
    assert "NOT_ENOUGH_INFO: Parrots juggle seventeen lanterns." in done.stdout
    assert "faithfulness (high is good): 1 of 2 passed, mean 0.75 of 2" in done.stdout
    assert "2 cases, 0 judge tokens, $0.0000" in done.stdout


@pytest.mark.slow
def test_the_counts_of_all_xdist_workers_are_added_up(run_pytest):
    done = run_pytest(
        """
        @pytest.mark.parametrize("number", range(6))
        def test_good(number):
            assert_rag(GOOD, faithfulness=0.9)
        """,
        *("-p", "xdist", "-n", "2"),
        apart=True,
    )
    assert "6 passed" in done.stdout, done.stdout + done.stderr
    assert "faithfulness (high is good): 6 of 6 passed, mean 1.00 of 6" in done.stdout


def test_a_run_that_scores_nothing_shows_and_loads_nothing(run_pytest):
    done = run_pytest(
        """
        import sys

        def test_nothing():
            assert "ragaliq.pytest_plugin" in sys.modules
            assert "ragaliq.pytest_plugin.assertion" not in sys.modules
            assert "pydantic" not in sys.modules
        """,
        header="",
        apart=True,
    )
    assert "1 passed" in done.stdout
    assert "= ragaliq" not in done.stdout


def test_the_marker_names_the_judge_with_and_without_the_fixture(run_pytest):
    done = run_pytest(
        """
        from ragaliq.testing import ScriptedJudge
        JUDGE = ScriptedJudge()

        @pytest.mark.rag(judge=JUDGE)
        def test_fixture(rag_judge):
            assert rag_judge is JUDGE

        @pytest.mark.rag(judge=JUDGE)
        def test_no_fixture():
            assert assert_rag(GOOD, relevance=0.0)["relevance"].judge == JUDGE.name
        """,
        "--strict-markers",
    )
    assert "2 passed" in done.stdout, done.stdout


def test_the_ceiling_stops_the_run_before_more_is_spent(run_pytest):
    done = run_pytest(
        """
        @pytest.mark.parametrize("number", range(4))
        def test_good(number, priced):
            assert_rag(GOOD, faithfulness=0.9, judge=priced)
        """,
        "--ragaliq-max-cost",
        "0.5",
        conftest=PRICED.format(cost="0.3"),
    )
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    assert "the tests have spent $0.6000 on the judge, of $0.5000" in done.stdout


def test_a_ceiling_on_an_unknown_price_is_refused_rather_than_ignored(run_pytest):
    done = run_pytest(
        """
        @pytest.mark.parametrize("number", range(2))
        def test_good(number, priced):
            assert_rag(GOOD, faithfulness=0.9, judge=priced)
        """,
        ini="ragaliq_max_cost = 0.5\n",
        conftest=PRICED.format(cost="None"),
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "the price of this judge's model is not known" in done.stdout


@pytest.mark.parametrize("amount", ["a lot", "-1", "inf", "nan"])
def test_a_ceiling_that_is_no_amount_is_refused(amount):
    config = MagicMock(spec=pytest.Config)
    config.getoption = {"ragaliq_max_cost": amount}.get
    config.getini = lambda _: ""
    with pytest.raises(ConfigurationError, match="must be US dollars"):
        RagSession(config)


def test_claude_without_a_key_is_a_clear_error(run_pytest):
    done = run_pytest(
        """
        def test_good(rag_judge):
            pass
        """,
        "--ragaliq-judge=claude",
        environment={"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": ""},
    )
    assert "no API key for Claude: set ANTHROPIC_API_KEY" in done.stdout


def test_the_entry_point_is_what_pytest_loads():
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        points = tomllib.load(file)["project"]["entry-points"]["pytest11"]
    assert points == {"ragaliq": "ragaliq.pytest_plugin"}


@pytest.mark.parametrize(
    ("marker", "said"), [('"claude"', "not 'claude'"), ('judg="claude"', "not judg=")]
)
def test_a_marker_that_does_not_say_who_judges_is_refused_rather_than_ignored(
    run_pytest, marker, said
):
    done = run_pytest(
        f"""
        @pytest.mark.rag({marker})
        def test_good():
            assert_rag(GOOD)
        """
    )
    assert "1 failed" in done.stdout, done.stdout
    assert f"@pytest.mark.rag takes judge=... and model=..., {said}" in done.stdout


def test_pytest_within_pytest_does_not_lift_the_ceiling_of_the_outer_run(run_pytest):
    done = run_pytest(
        """
        def test_inner(pytester):
            pytester.makepyfile("def test_nothing(): pass")
            assert pytester.runpytest_inprocess("-p", "ragaliq.pytest_plugin").ret == 0

        @pytest.mark.parametrize("number", range(2))
        def test_outer(number, priced):
            assert_rag(GOOD, faithfulness=0.9, judge=priced)
        """,
        "-p",
        "pytester",
        "--ragaliq-max-cost=0.2",
        conftest=PRICED.format(cost="0.3"),
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout


def test_without_pytest_the_plugin_says_what_to_install():
    script = "import sys; sys.modules['pytest'] = None; import ragaliq.pytest_plugin"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip().endswith("ragaliq.pytest_plugin needs pytest: pip install pytest")


def test_the_environments_judge_has_no_say_in_tests(run_pytest):
    done = run_pytest(
        """
        def test_good(rag_judge):
            assert rag_judge.name == "local"
            assert_rag(GOOD, faithfulness=0.9)
        """,
        environment={"RAGALIQ_JUDGE": "claude", "ANTHROPIC_API_KEY": ""},
    )
    assert "1 passed" in done.stdout

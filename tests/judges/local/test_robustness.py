"""No input makes the judge fail."""

import asyncio
import contextlib
import subprocess
import sys
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragaliq.judges.language.answers import brief_claim, find_claims
from ragaliq.judges.language.refusals import is_refusal
from ragaliq.judges.local import LocalJudge, verdict

pytestmark = pytest.mark.slow

# Surrogates and control characters too; and pieces that mean something to one rule or another.
ANYTHING = st.text(st.characters(exclude_categories=()), max_size=200)
PIECES = st.lists(
    st.sampled_from(
        "Paris|is|not|the capital|1,000|1.000.000|2021-01-05|99999999999999999999999999|five|and|"
        "hundred|million|th|century|1970s|[1]|(|)|**|# |- |> |\n|\n\n|```|| a |---|. |? |: |"
        "\u2028|\x00|"
        "I don't know|but|退货|期限|กรุงเทพ|दिल्ली|é|\u0301|\ud800|https://a.b|²|፩|½|İ|ß|ﬁ|'s|n't".split(
            "|"
        )
    ),
    max_size=40,
).map(" ".join)
TEXT = ANYTHING | PIECES


@settings(max_examples=150)
@given(question=TEXT, answer=TEXT, context=st.lists(TEXT, max_size=4))
def test_any_text_gives_well_formed_verdicts(question, answer, context):
    judge = LocalJudge()
    graded = asyncio.run(judge.grade_statements(question, answer, context))
    spans = find_claims(answer)
    brief = brief_claim(question, answer)  # is checked with its question
    said = [brief] if brief else [answer[a:b] for a, b in spans]
    assert [s.statement for s in graded.verdicts] == said
    assert all(statement.strip() for statement in (answer[a:b] for a, b in spans))
    for statement in graded.verdicts:
        chunks = [context[at] for at in statement.supporting_chunk_ids]
        assert any(statement.evidence in chunk for chunk in chunks) or not chunks
        assert (statement.evidence == "") == (statement.verdict == "NOT_ENOUGH_INFO")
    assert asyncio.run(judge.verify_claim(answer, context)).verdict
    assert 0.0 <= asyncio.run(judge.evaluate_relevance(question, answer)).score <= 1.0
    assert is_refusal(answer) in (True, False)


@pytest.mark.timeout(20)
def test_many_fences_are_read_in_time():
    # The time of a square of their number would be more than the limit.
    assert not find_claims("```\n" * 120_000)


async def test_the_parameters_are_read_in_a_thread_and_never_on_the_event_loop(monkeypatch):
    """A server's development mode refuses files on a loop (`langgraph dev`, blockbuster)."""
    read = verdict.load_parameters.__wrapped__
    on_loop = []

    @cache
    def load_once():
        with contextlib.suppress(RuntimeError):
            on_loop.append(asyncio.get_running_loop())
        return read()

    monkeypatch.setattr(verdict, "load_parameters", load_once)
    judge = LocalJudge()
    await judge.verify_claim("Paris is in France.", ["Paris is in France."])
    await judge.evaluate_relevance("Where is Paris?", "In France.")
    assert (load_once.cache_info().misses, on_loop) == (1, [])


def test_importing_ragaliq_reads_no_parameters():
    script = "import sys, ragaliq; sys.exit('ragaliq.judges.local.verdict' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_chunk_without_the_claims_number_supports_nothing():
    graded = asyncio.run(LocalJudge().grade_statements("", "PARY:0", ["PARY", "PARY:0"]))
    assert [each.supporting_chunk_ids for each in graded.verdicts] == [[1]]

"""`ragaliq demo`: a few answers about a museum, judged claim by claim, offline."""

from __future__ import annotations

from typing import NamedTuple

from ragaliq.cli.console import output
from ragaliq.core.results import ClaimDetail, EvaluationResult, Verdict
from ragaliq.core.test_case import RAGTestCase
from ragaliq.offline.run import evaluate

_STYLES = {"SUPPORTED": "green", "CONTRADICTED": "red", "NOT_ENOUGH_INFO": "yellow"}


class _Example(NamedTuple):
    case: RAGTestCase
    true_verdicts: tuple[Verdict, ...]  # what a careful reader would say, claim by claim


_EXAMPLES = (
    _Example(
        RAGTestCase(
            query="When is the museum open?",
            context=[
                "The museum is open from 10 to 18, Tuesday to Sunday. It is closed on Mondays."
            ],
            response="The museum is open from 10 to 18. It is closed on Mondays.",
        ),
        ("SUPPORTED", "SUPPORTED"),
    ),
    _Example(
        RAGTestCase(
            query="What does a ticket cost?",
            context=["Tickets cost 12 euros; children under 12 enter free of charge."],
            response="A ticket costs 15 euros. Children under 12 enter free of charge.",
        ),
        ("CONTRADICTED", "SUPPORTED"),
    ),
    _Example(
        RAGTestCase(
            query="How do I get there?",
            context=["Tram 4 stops in front of the museum."],
            response="Tram 4 stops in front of the museum. A shuttle leaves the airport hourly.",
        ),
        ("SUPPORTED", "NOT_ENOUGH_INFO"),
    ),
    _Example(
        RAGTestCase(
            query="Who founded the museum?",
            context=["The museum was founded by Anna Berg. Its first director was Carl Lind."],
            response="The museum was founded by Carl Lind. Its first director was Anna Berg.",
        ),
        ("CONTRADICTED", "CONTRADICTED"),
    ),
)


def demo() -> None:
    """Score a few built-in answers. Needs no key, no network and no data."""
    run = evaluate([example.case for example in _EXAMPLES], metrics=["faithfulness"], judge="local")
    wrong = claims = 0
    for example, row in zip(_EXAMPLES, run, strict=True):
        result = row.results["faithfulness"]
        _show(example, result)
        claims += len(result.claims)
        wrong += len(_mistaken(example, result))
    output.print(
        f"{len(_EXAMPLES)} answers, {claims} claims; {wrong} verdicts are wrong. The embedded "
        "judge compares words, not meaning; where that matters, use a language model: "
        "--judge claude. Next: ragaliq evaluate YOUR_FILE.csv"
    )


def _show(example: _Example, result: EvaluationResult) -> None:
    score = "no score" if result.score is None else f"faithfulness {result.score:.2f}"
    output.print(f"Question  {example.case.query}", style="bold")
    output.print(f"Answer    {example.case.response}")
    output.print(f"          {score}")
    mistaken = _mistaken(example, result)
    for claim in result.claims:
        verdict = claim.verdict or "UNVERIFIED"
        output.print(f"  {verdict:16}{claim.claim}", style=_STYLES.get(verdict, ""))
        if claim.evidence:
            output.print(f"{'':18}evidence: {claim.evidence}", style="dim")
        if claim.reason:
            output.print(f"{'':18}reason: {claim.reason}", style="dim")
        if claim in mistaken:
            output.print(f"{'':18}WRONG: this is {mistaken[claim]}", style="bold red")
    output.print()


def _mistaken(example: _Example, result: EvaluationResult) -> dict[ClaimDetail, Verdict]:
    """Claims with a wrong verdict, with the true one."""
    pairs = zip(result.claims, example.true_verdicts, strict=True)
    return {claim: true for claim, true in pairs if claim.verdict != true}

"""Shows one evaluated answer: claims coloured in place, verdicts, evidence and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from handbook.palette import FAIL, PASS, VERDICTS, look_of
from handbook.questions import Question
from handbook.safety import clean, safe_text
from ragaliq import ClaimDetail, Evaluation, EvaluationResult

__all__ = ["answer_view", "claims_of", "colour_claims", "legend"]


def legend() -> Text:
    """What the signs mean."""
    parts = [Text(f"[{look.sign}n] {look.word}", style=look.style) for look in VERDICTS.values()]
    return Text("   ").join(parts)


def answer_view(item: Question, live: Evaluation, *, number: int, total: int) -> Group:
    """Question, coloured answer, claims, scores and what to look at.

    Args:
        item: The recorded question.
        live: What the monitor handed to the application.
        number: Position of the answer, from 1.
        total: How many answers there are.
    """
    kind = item.kind.replace("_", " ")
    title = Text(f"{number}/{total}  {item.id}  (prerecorded: {kind})")
    claims = claims_of(live.results)
    return Group(
        Text(),
        Rule(title, align="left", style=""),
        _labelled("Question", safe_text(live.case.query)),
        _labelled("Answer", colour_claims(live.case.response, claims)),
        *(_claim_view(i, claim, live.case.response) for i, claim in enumerate(claims, 1)),
        _labelled("Scores", _scores(live.results)),
        _labelled("Note", safe_text(item.note, "italic")),
    )


def claims_of(results: Mapping[str, EvaluationResult]) -> tuple[ClaimDetail, ...]:
    """The claims of the answer; metrics of one case share them, so the first list will do."""
    return next((result.claims for result in results.values() if result.claims), ())


def colour_claims(answer: str, claims: Sequence[ClaimDetail]) -> Text:
    """The answer with each located claim in its verdict's colour and a mark such as `[+1]`."""
    text = safe_text(answer)
    located = [
        (claim.answer_span, number, look_of(claim.verdict))
        for number, claim in enumerate(claims, 1)
        if claim.answer_span is not None
    ]
    for (start, end), _, look in sorted(located, key=lambda entry: entry[2].weight):
        text.stylize(look.style, start, end)
    marks = [(min(end, len(answer)), number, look) for (_, end), number, look in located]
    # From the end backwards: a mark must not move the places of those before it.
    for end, number, look in sorted(marks, key=lambda entry: entry[:2], reverse=True):
        text = text[:end] + Text(f" [{look.sign}{number}]", style=look.style) + text[end:]
    return text


def _claim_view(number: int, claim: ClaimDetail, answer: str) -> RenderableType:
    look = look_of(claim.verdict)
    line = Text(f"[{look.sign}{number}] {look.word}", style=look.style)
    if claim.verdict is not None:
        line.append(f"  confidence {claim.confidence:.2f}", style="not bold default")
    body = [line]
    if claim.answer_span is None or answer[slice(*claim.answer_span)] != claim.claim:
        body.append(Text("claim: ") + safe_text(claim.claim))
    if claim.evidence:
        body.append(_evidence(claim))
    if claim.reason:
        body.append(Text("reason: ") + safe_text(claim.reason))
    return Padding(Group(*body), (0, 0, 0, 4), expand=False)


def _evidence(claim: ClaimDetail) -> Text:
    chunks = [span.chunk_id for span in claim.evidence_spans] or claim.supporting_chunk_ids
    place = ", ".join(dict.fromkeys(clean(str(chunk)) for chunk in chunks))
    quote = safe_text(" ".join(claim.evidence.split()))
    if claim.evidence_verified:
        return Text.assemble("evidence: ", quote, f"  ({place})")
    return Text.assemble("evidence (not found word for word in the context): ", quote)


def _scores(results: Mapping[str, EvaluationResult]) -> Text:
    return Text("   ").join(_score(name, result) for name, result in results.items())


def _score(name: str, result: EvaluationResult) -> Text:
    text = Text(f"{name} ")
    if result.score is None:
        return text.append(str(result.status), style="bold")
    text.append(f"{result.score:.2f} ")
    return text.append("pass" if result.passed else "fail", style=PASS if result.passed else FAIL)


def _labelled(label: str, content: Text) -> Text:
    return Text.assemble((f"{label}: ", "bold"), content)

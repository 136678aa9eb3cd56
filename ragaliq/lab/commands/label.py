"""`ragaliq label`: a person marks claims, one key each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ragaliq.cli.console import ExitCode, errors, escape_for_terminal, output
from ragaliq.cli.options import Pipeline, Since, Until
from ragaliq.cli.outputs import require_writable
from ragaliq.core.results import Verdict
from ragaliq.datasets.opening import is_backend
from ragaliq.errors import ConfigurationError
from ragaliq.lab.labelling import (
    LabelFile,
    UnlabelledClaim,
    claims_of_batch,
    claims_to_label,
    compare_labels,
)
from ragaliq.lab.labels import (
    AnchorFile,
    draw_answers,
    read_labels,
)
from ragaliq.records.reading import is_store
from ragaliq.records.sqlite_file import companion_file, parse_location

_VERDICTS: dict[str, Verdict] = {
    "s": "SUPPORTED",
    "c": "CONTRADICTED",
    "n": "NOT_ENOUGH_INFO",
}
_HELP = "[s]upported  [c]ontradicted  [n]ot enough information  [u]ndo  [space] later  [q]uit"
_SHOWN = 4_000  # characters of a chunk
_LISTED = 20
_BUDGET = 40


def label(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A store (sqlite:///PATH or its file), from which answers are drawn; a "
            "results .jsonl file, with texts; or phoenix://PROJECT, mlflow://EXPERIMENT"
            " or langfuse://, for what people annotated there.",
            metavar="SOURCE",
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The .jsonl file for the labels; an existing one is continued. Default for "
            "a store: STORE.labels.jsonl.",
        ),
    ] = None,
    annotation: Annotated[
        str, typer.Option(help="Name of the people's annotation in a product.", metavar="NAME")
    ] = "faithfulness",
    at_random: Annotated[
        bool,
        typer.Option(
            "--at-random",
            help="The annotated runs are a random sample: their labels count in `ragaliq quality`.",
        ),
    ] = False,
    budget: Annotated[
        int | None, typer.Option(min=1, help=f"Answers to draw from a store; {_BUDGET} by default.")
    ] = None,
    since: Since = None,
    until: Until = None,
    pipeline: Pipeline = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Show how far two people's labels agree.", metavar="PATH PATH"),
    ] = None,
) -> int:
    """Label claims by hand. The labels serve quality, judge bench and calibrate."""
    if compare is not None:
        if source is not None or out is not None:
            raise ConfigurationError("--compare takes two files of labels and nothing else")
        return _compare(*compare)
    if source is None:
        raise ConfigurationError("name a store, or a results file and with --out where labels go")
    is_drawn = not is_backend(source) and is_store(source)
    if out is None:
        if not is_drawn:
            raise ConfigurationError(
                "--out is missing: name the file for the labels, such as --out labels.jsonl"
            )
        out = companion_file(source, "labels")
    if out.suffix.lower() != ".jsonl":
        raise ConfigurationError(f"--out {out}: labels go to a .jsonl file")
    if is_backend(source):
        # What it needs is loaded for those who use it.
        from ragaliq.lab.commands.annotations import label_from_backend

        return label_from_backend(source, out, annotation, at_random=at_random)
    if at_random:
        raise ConfigurationError("--at-random goes with annotations of a product")
    file_of_source = parse_location(source) if is_drawn else Path(source)
    require_writable([("--out", out)], read=[("the results", file_of_source)])
    if not is_drawn:
        if budget or since or until or pipeline:
            raise ConfigurationError("--budget, --since, --until and --pipeline go with a store")
        claims = claims_to_label(source)
        file = LabelFile(out)
        _ask(claims, file, lambda _: None)
        known = sum(claim.id in file.done for claim in claims)
        output.print(f"{known:,} of {len(claims):,} claims are labelled, in {out}")
        return ExitCode.OK
    file = LabelFile(out)
    known_answers = read_labels(out).answers if out.exists() else {}
    if any(answer.given is not None for answer in known_answers.values()):
        # An answer's chance of being in both is not known.
        raise ConfigurationError(
            f"{out} holds annotations of a product; name another file by --out, and one of the two "
            "to quality by --labels"
        )
    batch = draw_answers(
        source,
        budget or _BUDGET,
        done=known_answers,
        since=since,
        until=until,
        pipeline=pipeline,
    )
    anchors = AnchorFile(companion_file(out, "anchors"))
    by_run = {answer.record.run.run_id: answer for answer in batch.answers}

    def labelled(claim: UnlabelledClaim) -> None:
        # What the judge says is kept apart from the labels: people see it afterwards at most.
        assert claim.draw is not None  # noqa: S101 - each is drawn
        anchors.add(by_run[claim.draw.run_id].anchors())

    claims = claims_of_batch(batch)
    _ask(claims, file, labelled)
    labels = read_labels(out).answers if out.exists() else {}
    finished = sum(run_id in labels for run_id in by_run)
    output.print(
        f"{finished:,} of {len(by_run):,} drawn answers are labelled, of "
        f"{batch.population:,}; in all {len(labels):,}, in {out}"
    )
    if batch.without_text:
        errors.print(f"{batch.without_text:,} answers have no texts and cannot be drawn")
    return ExitCode.OK


def _ask(
    claims: Sequence[UnlabelledClaim],
    file: LabelFile,
    labelled: Callable[[UnlabelledClaim], None],
) -> None:
    """Ask about the claims that have no label, in their order, until all have one or `q`."""
    places = {claim.id: place for place, claim in enumerate(claims)}
    later: set[str] = set()
    place = 0
    while place < len(claims):
        claim = claims[place]
        if claim.id in file.done or claim.id in later:
            place += 1
            continue
        done = sum(each.id in file.done for each in claims)
        _show(claim, f"{done + 1:,} of {len(claims):,}")
        key = _key()
        if key == "q":
            return
        if key == "u":
            undone = file.undo()
            if undone is None:
                output.print("nothing to undo")
            else:
                place = places[undone]
                later.clear()
        elif key in _VERDICTS:
            file.append(claim, _VERDICTS[key])
            labelled(claim)
            output.print(_VERDICTS[key])
        else:
            later.add(claim.id)


def _key() -> str:
    while True:
        try:
            key = typer.getchar().lower()
        except EOFError:
            return "q"
        except OSError:
            raise ConfigurationError(
                "labelling needs a terminal to read keys from; run it in one, without a pipe"
            ) from None
        if key in _VERDICTS or key in ("q", "u", " "):
            return key
        output.print(Text(f"no such key; {_HELP}", style="dim"))


def _show(claim: UnlabelledClaim, count: str) -> None:
    output.rule(Text(count))
    if claim.question:
        output.print(
            Text("question  ", style="dim").append_text(escape_for_terminal(claim.question))
        )
    for number, chunk in enumerate(claim.context):
        output.print(Text(f"chunk {number}  ", style="dim").append_text(_text(chunk)))
    if not claim.context:
        output.print(Text("no context", style="dim"))
    output.print(
        Text("claim  ", style="dim").append_text(escape_for_terminal(claim.claim, style="bold"))
    )
    output.print(Text(_HELP, style="dim"))


def _text(chunk: str) -> Text:
    hidden = len(chunk) - _SHOWN
    shown = escape_for_terminal(chunk[:_SHOWN])
    return shown if hidden <= 0 else shown.append(f" [{hidden:,} more characters]")


def _compare(first: Path, second: Path) -> int:
    found = compare_labels(first, second)
    output.print(
        f"{found.shared:,} claims in common, the same label on {found.agreed:,} "
        f"({found.agreed / found.shared:.0%}), over {found.classes} classes"
    )
    if found.kappa is None:
        output.print("kappa is not defined: both give one label throughout")
    else:
        kappa = found.kappa
        output.print(f"kappa {kappa.value:.3f} [{kappa.low:.3f}, {kappa.high:.3f}]")
    for claim_id in found.apart[:_LISTED]:
        output.print(f"apart: {claim_id}")
    if len(found.apart) > _LISTED:
        errors.print(f"and {len(found.apart) - _LISTED:,} more")
    return ExitCode.OK

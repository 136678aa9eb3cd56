"""`ragaliq label`: a person marks claims, one key each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ragaliq.bench.labelling import (
    LabelFile,
    UnlabelledClaim,
    claims_to_label,
    compare_labels,
)
from ragaliq.cli.console import ExitCode, errors, output, plain
from ragaliq.cli.outputs import require_writable
from ragaliq.core.results import Verdict
from ragaliq.datasets.opening import is_backend
from ragaliq.errors import ConfigurationError

__all__ = ["label"]

_VERDICTS: dict[str, Verdict] = {
    "s": "SUPPORTED",
    "c": "CONTRADICTED",
    "n": "NOT_ENOUGH_INFO",
}
_HELP = "[s]upported  [c]ontradicted  [n]ot enough information  [space] later  [q]uit"
_SHOWN = 4_000  # characters of a chunk
_LISTED = 20


def label(
    results: Annotated[
        str | None,
        typer.Argument(
            help="Results of `evaluate`, a .jsonl file with texts; or phoenix://PROJECT, "
            "mlflow://EXPERIMENT or langfuse://, for what people annotated there.",
            metavar="RESULTS",
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where labels go, .jsonl; continued when it is there.",
            metavar="PATH",
        ),
    ] = None,
    annotation: Annotated[
        str, typer.Option(help="What people call the annotation in a product.", metavar="NAME")
    ] = "faithfulness",
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Two people's labels: how far they agree.", metavar="PATH PATH"),
    ] = None,
) -> int:
    """Mark claims as supported, contradicted or not covered, for bench and calibrate."""
    if compare is not None:
        if results is not None or out is not None:
            raise ConfigurationError("--compare takes two files of labels and nothing else")
        return _compare(*compare)
    if results is None or out is None:
        raise ConfigurationError("name a results file, and with --out where the labels go")
    if out.suffix.lower() != ".jsonl":
        raise ConfigurationError(f"--out {out}: labels go to a .jsonl file")
    if is_backend(results):
        # What it needs is loaded for those who use it.
        from ragaliq.cli.annotations import label_from_backend

        return label_from_backend(results, out, annotation)
    require_writable([("--out", out)], read=[("the results", results)])
    claims = claims_to_label(results)
    file = LabelFile(out)
    todo = [claim for claim in claims if claim.id not in file.done]
    for claim in todo:
        _show(claim, f"{len(file.done) + 1:,} of {len(claims):,}")
        key = _key()
        if key == "q":
            break
        if key in _VERDICTS:
            file.append(claim, _VERDICTS[key])
            output.print(_VERDICTS[key])
    known = sum(claim.id in file.done for claim in claims)
    output.print(plain(f"{known:,} of {len(claims):,} claims are labelled, in {out}"))
    return ExitCode.OK


def _key() -> str:
    while True:
        try:
            key = typer.getchar().lower()
        except EOFError:
            return "q"
        except OSError:
            raise ConfigurationError("labelling needs a terminal to read keys from") from None
        if key in _VERDICTS or key in ("q", " "):
            return key
        output.print(Text(f"no such key; {_HELP}", style="dim"))


def _show(claim: UnlabelledClaim, count: str) -> None:
    output.rule(Text(count))
    if claim.question:
        output.print(Text("question  ", style="dim").append_text(plain(claim.question)))
    for number, chunk in enumerate(claim.context):
        output.print(Text(f"chunk {number}  ", style="dim").append_text(_text(chunk)))
    if not claim.context:
        output.print(Text("no context", style="dim"))
    output.print(Text("claim  ", style="dim").append_text(plain(claim.claim, style="bold")))
    output.print(Text(_HELP, style="dim"))


def _text(chunk: str) -> Text:
    hidden = len(chunk) - _SHOWN
    shown = plain(chunk[:_SHOWN])
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
        output.print(plain(f"kappa {kappa.value:.3f} [{kappa.low:.3f}, {kappa.high:.3f}]"))
    for claim_id in found.apart[:_LISTED]:
        output.print(plain(f"apart: {claim_id}"))
    if len(found.apart) > _LISTED:
        errors.print(f"and {len(found.apart) - _LISTED:,} more")
    return ExitCode.OK

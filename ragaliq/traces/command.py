"""`ragaliq traces explain`: how each span was read, and the source of each part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from ragaliq.cli.console import Command, ExitCode, output
from ragaliq.cli.options import Fields, MappingFile, Resolve, imported, names_of
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.reports.wording import number_of
from ragaliq.traces.cases import REASONS, TracedCase
from ragaliq.traces.conventions import Kind, Step, step_of
from ragaliq.traces.opening import reader_of_traces
from ragaliq.traces.span import TraceSpan

traces = typer.Typer(
    name="traces",
    help="Look into files of traces.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_SHOWN = 100
"""Characters of a text."""
_MOST_STEPS = 200
"""Of one run."""
_MOST_NAMES = 8
"""Attributes of a span that was not read."""

_LACKS = {
    "no_question": "looked for a named input of the run's first span, a message of the user's to "
    "its models, the query of its retrievers",
    "no_answer": "looked for a named output of the run's first span, the reply of its models",
    "not_rag": "looked for a retriever, a tool or a vector store in addition to a model",
}


@traces.callback()
def _main() -> None:
    """Look into files of traces."""


@traces.command(cls=Command)
def explain(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file of traces.")],
    *,
    trace: Annotated[
        str, typer.Option("--trace", help="Only traces whose id begins with this.", metavar="ID")
    ] = "",
    field: Fields = None,
    mapping: MappingFile = None,
    resolve: Resolve = None,
) -> int:
    """Show how each span was read. Also shows where each part was looked for and found."""
    reader = reader_of_traces(
        path,
        fields=names_of(field),
        on_error="skip",
        mapping=mapping,
        resolve=None if resolve is None else imported("--resolve", resolve),
    )
    found = False
    reasons: Counter[str] = Counter()
    for spans, runs in reader.traces_with_runs():
        if not spans[0].trace_id.startswith(trace.lower()):
            continue
        found = found or bool(runs)
        for run in runs:
            reasons[run.reason] += 1
        for line in (*chain(*map(_describe_run, runs)), *_describe_others(_others(spans, runs))):
            output.print(line)
        if output.quiet:  # nobody reads on, and there may be gigabytes more
            break
    if not found:
        named = f" whose id begins with {trace}" if trace else ""
        raise (ConfigurationError if trace else DatasetError)(
            f"{path}: no span of a trace{named} says that it is a chain, a retriever or a model; "
            "--mapping describes your application's"
        )
    cases = reasons.pop("", 0)
    skipped = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    output.print(number_of(cases, "case") + (f"; no case: {skipped}" if skipped else ""))
    for part in reader.skipped_rows[:1]:  # said after all that could be read
        more = f", and {reader.skipped - 1:,} more" if reader.skipped > 1 else ""
        raise DatasetError(f"{path}: {part.where}: {part.problem}{more}")
    return ExitCode.OK


def _others(spans: Sequence[TraceSpan], runs: Sequence[TracedCase]) -> list[TraceSpan]:
    """Spans of a trace outside its runs, once each, in the order they started."""
    shown = {step.span.span_id for run in runs for step in run.steps}
    rest = {span.span_id: span for span in spans if span.span_id not in shown and not span.is_log}
    return sorted(rest.values(), key=lambda span: span.start_ns)


def _describe_others(spans: Sequence[TraceSpan]) -> Iterator[str]:
    if not spans:
        return
    yield f"trace {spans[0].trace_id}: spans of no run"
    for span in spans[:_MOST_STEPS]:
        yield f"    {span.name}: {_taken_for(step_of(span))}"
    if len(spans) > _MOST_STEPS:
        yield f"    and {len(spans) - _MOST_STEPS:,} more"
    yield ""


def _describe_run(run: TracedCase) -> Iterator[str]:
    yield f"trace {run.target.trace_id}, span {run.target.span_id}: {run.run.pipeline}"
    log = run.log
    if log is None:
        yield f"  no case: {run.reason}, {REASONS.get(run.reason, run.reason)}"
        if run.reason in _LACKS:
            yield f"  {_LACKS[run.reason]}"
    else:
        sources = log.sources
        yield f"  question, from {sources.question}: {_short(log.query)}"
        passages = log.found_context.passages
        where = sources.context or sources.no_context or "nowhere"
        yield f"  context, from {where}: {len(passages)} chunks"
        for passage in passages:
            known = "" if passage.id is None else f" ({passage.id})"
            yield f"    {_short(passage.text)}{known}"
        yield f"  answer, from {sources.answer}: {_short(log.response)}"
        if sources.rules:
            yield f"  rules for one product: {', '.join(sources.rules)}"
    yield "  spans"
    open_steps: list[int] = []
    inner = {step.span.span_id for step in run.steps[1:]}
    for step in run.steps[:_MOST_STEPS]:
        if step.index == 0 and step.span.span_id in inner:
            continue  # it stands for the request around, whose own span is missing
        while open_steps and step.index > open_steps[-1]:
            open_steps.pop()
        yield f"    {'  ' * len(open_steps)}{step.span.name}: {_taken_for(step)}"
        open_steps.append(step.last)
    if len(run.steps) > _MOST_STEPS:
        yield f"    and {len(run.steps) - _MOST_STEPS:,} more"
    yield ""


def _taken_for(step: Step) -> str:
    if step.kind is Kind.NONE:
        names = ", ".join(sorted(step.span.attributes)[:_MOST_NAMES])
        return f"not read: it follows no known convention ({names or 'no attributes'})"
    parts = [step.kind.value.lower(), step.convention]
    if step.kind in {Kind.RETRIEVER, Kind.RERANKER}:
        count = len(step.found or ())
        without = sum(not passage.text for passage in step.found or ())
        named = f", {without} without a text, which --resolve can fetch" if without else ""
        parts.append(
            "no documents to be seen" if step.found is None else f"{count} documents{named}"
        )
    elif step.kind is Kind.LLM:
        roles = Counter(message.role for message in step.messages)
        prompt = ", ".join(f"{count} {role}" for role, count in roles.items())
        parts.append(f"prompt: {prompt}" if prompt else "prompt not to be seen")
        reply = "not to be seen" if step.reply is None else _short(step.reply) or "a call of tools"
        parts.append(f"reply: {reply}")
    if step.span.is_error:
        parts.append("failed")
    if step.is_hidden:
        parts.append("content is hidden")
    if step.is_cut:
        parts.append("content is cut")
    return ", ".join(part for part in parts if part)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"

"""`ragaliq evaluate QUESTIONS --app MODULE:NAME`: an application's answers, kept in a file."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import typer

from ragaliq.cli.console import errors, progress, say_what_is_left, stopped_by_sigterm
from ragaliq.cli.outputs import require_writable
from ragaliq.core.results import JudgeUsage
from ragaliq.datasets.opening import read_questions
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.offline.app import NoAnswer, answers
from ragaliq.reports.wording import number_of


def ask_application(
    app: Any,
    sources: Sequence[str],
    kept: Path,
    *,
    fields: Mapping[str, str],
    encoding: str | None,
    resume: bool,
    concurrency: int,
) -> list[NoAnswer]:
    """Ask an application the questions of files, and save each answer as a case at once.

    Args:
        app: The application; see `ragaliq.evaluate`.
        sources: The files of questions.
        kept: The file of answers; with `resume`, questions with an answer in it are skipped.
        fields: See `read_cases`.
        encoding: Encoding of the questions.
        resume: Whether to continue an existing file.
        concurrency: Questions asked concurrently.

    Returns:
        The questions without an answer.

    Raises:
        DatasetError: No question got an answer, or a file cannot be read.
        ConfigurationError: The file exists already, or the application cannot be asked.
    """
    if len(sources) > 1 or sources[0] == "-":
        raise ConfigurationError("--app goes with one file of questions")
    require_writable([("--answers", kept)], read=[("the questions", sources[0])])
    questions = list(read_questions(sources[0], fields=fields, encoding=encoding))
    if not resume and kept.exists() and kept.stat().st_size:
        raise ConfigurationError(
            f"{kept} already holds answers; continue it with --resume, delete it, or name another "
            "file with --answers"
        )
    unanswered: list[NoAnswer] = []
    done = 0

    async def ask() -> None:
        nonlocal done
        outcomes = answers(app, questions, concurrency=concurrency, kept=kept)
        with stopped_by_sigterm():
            async with aclosing(outcomes):
                async for answer in outcomes:
                    show(JudgeUsage())
                    if isinstance(answer, NoAnswer):
                        unanswered.append(answer)
                    else:
                        done += 1

    try:
        with progress(len(questions), 0) as show:
            asyncio.run(ask())
    except (KeyboardInterrupt, typer.Exit):  # Ctrl-C, SIGTERM
        say_what_is_left(done, len(questions), kept, option="--resume")
        raise
    if len(unanswered) == len(questions):
        raise DatasetError(f"the application answered no question: {_reasons(unanswered)}")
    if unanswered:
        errors.print(
            f"{number_of(len(unanswered), 'question')} without an answer: {_reasons(unanswered)}"
        )
    return unanswered


def _reasons(unanswered: Iterable[NoAnswer]) -> str:
    counted = Counter(
        f"{each.reason} ({each.place})" if each.place else each.reason for each in unanswered
    )
    return ", ".join(f"{count:,} {reason}" for reason, count in counted.most_common())

"""One run of a demo: ask every question, wait for the evaluations, show everything."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from opentelemetry import trace
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from handbook.answers import answer_view, legend
from handbook.backend import choose_backend
from handbook.corpus import Chunk, load_chunks
from handbook.counts import counts_view
from handbook.embedding import HashedWords
from handbook.errors import DemoError
from handbook.outcome import by_question, check_judge
from handbook.playback import Playback
from handbook.questions import Question, load_questions
from handbook.reader import reader_view
from ragaliq import Evaluation, Monitor

__all__ = ["Application", "Ask", "Handbook", "run_session"]

METRICS = ("faithfulness", "hallucination")
FLUSH_TIMEOUT = 120.0
"""Seconds; the embedded judge needs a fraction of one, Claude some seconds."""

Ask = Callable[[str], str]
"""Puts a question to the application and returns its answer."""


@dataclass(frozen=True)
class Handbook:
    """What an application is built from.

    Attributes:
        chunks: The documents, section by section.
        words: Makes the vectors.
        playback: Answers in the place of a language model.
        top_k: How many chunks to retrieve.
    """

    chunks: Sequence[Chunk]
    words: HashedWords
    playback: Playback
    top_k: int = 4


Application = Callable[[Handbook, Monitor], AbstractContextManager[Ask]]
"""Builds the application and attaches the monitor to it, until the context ends."""


def load_handbook(questions: Sequence[Question]) -> Handbook:
    """Documents, embedding and playback."""
    chunks = load_chunks()
    return Handbook(chunks, HashedWords(chunk.text for chunk in chunks), Playback(questions))


def run_session(framework: str, application: Application) -> None:
    """Ask, evaluate and show.

    Args:
        framework: Shown in the title.
        application: The RAG application to attach to.

    Raises:
        DemoError: Something did not work; the message says what.
        RagaliqError: A setting is wrong.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    backend = choose_backend()
    questions = load_questions()
    handbook = load_handbook(questions)
    judge = "claude" if os.environ.get("ANTHROPIC_API_KEY") else "local"
    console.print(Text(f"{framework} with ragaliq, judge: {judge}", style="bold"))
    console.print("Answers are prerecorded; retrieval and evaluation are live.", legend(), sep="\n")

    received: list[Evaluation] = []
    # The application's own callback: it may see the text, telemetry does not.
    with Monitor(judge=judge, metrics=METRICS, on_result=received.append) as monitor:
        with application(handbook, monitor) as ask:
            _ask_all(questions, ask)
        if not monitor.flush(FLUSH_TIMEOUT):
            raise DemoError(f"evaluations still run after {FLUSH_TIMEOUT:.0f} seconds")
        stats = monitor.stats()

    live = by_question(questions, received, stats.outcomes)
    for number, item in enumerate(questions, 1):
        console.print(answer_view(item, live[item.id], number=number, total=len(questions)))
    _section(console, "Counts")
    console.print(counts_view(stats))
    _section(console, "The judge against a careful reader")
    console.print(reader_view(questions, live))
    _section(console, "Telemetry")
    private = [item.question for item in questions] + [item.answer for item in questions]
    console.print(backend.report([*private, *(chunk.text for chunk in handbook.chunks)]))
    check_judge(live)


def _ask_all(questions: Sequence[Question], ask: Ask) -> None:
    tracer = trace.get_tracer("handbook")
    for item in questions:
        # What a web framework's instrumentation does: evaluations link to this span.
        with tracer.start_as_current_span("POST /ask"):
            answer = ask(item.question)
        if answer != item.answer:
            raise DemoError(f"the application did not give the recorded answer to {item.id!r}")


def _section(console: Console, title: str) -> None:
    console.print()
    console.print(Rule(Text(title), align="left", style=""))

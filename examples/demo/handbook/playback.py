"""Finds the prerecorded answer for a prompt: the demo's stand-in for a language model."""

from __future__ import annotations

from collections.abc import Iterable

from handbook.errors import DemoError
from handbook.questions import Question

__all__ = ["Playback"]


class Playback:
    """Answers a prompt with the recorded answer of the question it contains."""

    def __init__(self, questions: Iterable[Question]) -> None:
        # Longest first, so that no question is mistaken for another that it begins with.
        self._questions = sorted(questions, key=lambda item: len(item.question), reverse=True)

    def answer(self, prompt: str) -> str:
        """The recorded answer.

        Raises:
            DemoError: The prompt contains none of the recorded questions.
        """
        for item in self._questions:
            if item.question in prompt:
                return item.answer
        raise DemoError("the demo's model has no recorded answer for this prompt")

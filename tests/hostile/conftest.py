"""The attempts, and texts to try them on."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

LINES = (Path(__file__).parent / "attempts.jsonl").read_text("ascii").splitlines()


@dataclass(frozen=True)
class Attempt:
    name: str
    text: str

    @property
    def sendable(self) -> str:
        """The text without what no reader sees; half surrogate pairs, which have no UTF-8 form,
        are replaced.
        """
        whole = self.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return "".join(
            char
            for char in whole
            if char not in "\u00ad\u200b\u2060\ufeff" and not 0xE0000 <= ord(char) < 0xE0080
        )


ATTEMPTS = [
    Attempt(item["name"], item["text"] * item.get("repeat", 1)) for item in map(json.loads, LINES)
]


@pytest.fixture(params=ATTEMPTS, ids=lambda attempt: attempt.name.replace(" ", "-"))
def attempt(request) -> Attempt:
    return request.param


@pytest.fixture(autouse=True)
def no_credentials_of_the_machine(monkeypatch) -> None:
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_")):
            monkeypatch.delenv(name)

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from ragaliq.judges.claude import ClaudeJudge
from ragaliq.testing import MessagesServer

KEY = "test-key-Zq81"


@pytest.fixture(autouse=True)
def no_credentials_of_the_machine(monkeypatch, tmp_path) -> None:
    for name in list(os.environ):
        if name.startswith("ANTHROPIC_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def key() -> str:
    return KEY


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as running:
        yield running


@pytest.fixture
def judge_at() -> Callable[..., ClaudeJudge]:
    def build(server: MessagesServer, **settings) -> ClaudeJudge:
        return ClaudeJudge(**{"api_key": KEY, "base_url": server.url, **settings})

    return build


@pytest.fixture
def judge(server, judge_at) -> ClaudeJudge:
    return judge_at(server)

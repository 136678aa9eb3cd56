from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from ragaliq.judges import OpenAICompatibleJudge
from ragaliq.testing import ChatCompletionsServer


@pytest.fixture(autouse=True)
def no_credentials_of_the_machine(monkeypatch) -> None:
    for name in list(os.environ):
        if name.startswith("OPENAI_"):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[ChatCompletionsServer]:
    with ChatCompletionsServer() as running:
        yield running


@pytest.fixture
def judge_at() -> Callable[..., OpenAICompatibleJudge]:
    def build(server: ChatCompletionsServer, **settings) -> OpenAICompatibleJudge:
        return OpenAICompatibleJudge(**{"base_url": server.url, "model": "small", **settings})

    return build


@pytest.fixture
def judge(server, judge_at) -> OpenAICompatibleJudge:
    return judge_at(server)

"""Claude and a chat-completions server, each behind its own protocol and real SDK."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from loopback import ChatCompletionsServer, MessagesServer, Reply
from loopback.chat import chat_error
from loopback.messages import api_error
from ragaliq.judges import ClaudeJudge, OpenAICompatibleJudge

KEY = "test-key-Zq81"


@dataclass(frozen=True)
class Api:
    """One protocol: its server, its judge, and how it words an error."""

    name: str
    serve: Callable[..., Any]
    make: Callable[..., Any]
    error: Callable[[int, str], Reply]

    def judge(self, server, **settings):
        return self.make(**{"base_url": server.url, "api_key": KEY, **settings})

    def saying(self, content: object):
        """A server on which the model says `content`."""
        text = content if isinstance(content, str) else json.dumps(content)
        return self.serve(respond=lambda _: Reply(text=lambda _: text))


APIS = {
    "claude": Api(
        "claude",
        MessagesServer,
        ClaudeJudge,
        lambda status, text: api_error(status, f"kind-{text}", text),
    ),
    "openai": Api(
        "openai",
        ChatCompletionsServer,
        lambda **settings: OpenAICompatibleJudge(**{"model": "small", **settings}),
        lambda status, text: chat_error(status, text, kind=f"kind-{text}"),
    ),
}


@pytest.fixture(autouse=True)
def no_credentials_of_the_machine(monkeypatch, tmp_path) -> None:
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def key() -> str:
    return KEY


@pytest.fixture(params=APIS)
def api(request) -> Api:
    return APIS[request.param]


@pytest.fixture
def server(api):
    with api.serve() as running:
        yield running


@pytest.fixture
def judge_at(api) -> Callable[..., Any]:
    return api.judge


@pytest.fixture
def judge(server, judge_at):
    return judge_at(server)

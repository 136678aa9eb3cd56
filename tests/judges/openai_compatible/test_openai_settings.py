"""What the judge needs to be built, how it says what is missing, and what it sends to whom."""

from __future__ import annotations

import subprocess
import sys

import openai
import pytest

import ragaliq
from ragaliq.errors import ConfigurationError
from ragaliq.judges import OpenAICompatibleJudge

KEY = "test-key-Zq81"
WITHOUT_THE_EXTRA = """
import sys
sys.modules["openai"] = None
from ragaliq import *
from ragaliq.errors import ConfigurationError
try:
    OpenAICompatibleJudge(base_url="http://localhost/v1", model="m")
except ConfigurationError as error:
    assert error.__cause__ is None and error.__suppress_context__ or error.__context__ is None
    sys.stdout.write(str(error))
"""


def test_it_is_offered_at_the_public_door():
    assert ragaliq.OpenAICompatibleJudge is OpenAICompatibleJudge
    assert "OpenAICompatibleJudge" in ragaliq.__all__


def test_without_the_extra_everything_else_works_and_it_says_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert "pip install 'ragaliq[openai]'" in done.stdout


def test_the_sdk_is_loaded_with_the_judge_and_not_with_the_class():
    code = (
        "import sys; from ragaliq import OpenAICompatibleJudge as J; "
        "assert 'openai' not in sys.modules; J(base_url='http://h/v1', model='m'); "
        "assert 'openai' in sys.modules and 'anthropic' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        check=True,
        timeout=60,
    )


async def test_no_key_is_sent_unless_one_is_given(server, judge_at, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "admin-of-the-environment")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-environment")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://of-the-environment/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer of-the-environment")

    await judge_at(server).evaluate_relevance("a", "b")
    await judge_at(server, api_key=KEY).evaluate_relevance("a", "b")

    without, with_key = server.requests
    assert "authorization" not in without.headers
    assert with_key.headers["authorization"] == f"Bearer {KEY}"
    for request in server.requests:
        assert "of-the-environment" not in str(request.headers)


@pytest.mark.skipif(openai.__version__ < "3", reason="openai 2 need not read this variable")
async def test_a_header_for_a_gateway_is_sent_along(server, judge_at, monkeypatch):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-team: blue")

    await judge_at(server).evaluate_relevance("a", "b")

    assert server.requests[0].headers["x-team"] == "blue"


def test_openai_itself_is_not_asked_without_a_key(monkeypatch):
    with pytest.raises(ConfigurationError, match=r"OPENAI_API_KEY.*api_key="):
        OpenAICompatibleJudge(base_url="https://api.openai.com/v1", model="m")

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    judge = OpenAICompatibleJudge(base_url="https://api.openai.com/v1", model="m")
    assert judge._headers == {"Authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize("key", ["SECRET\n", " SECRET", "SECRÉT", "SEC RET"])
def test_a_key_that_cannot_be_sent_is_told_and_not_shown(key):
    with pytest.raises(ConfigurationError, match="white space") as caught:
        OpenAICompatibleJudge(base_url="http://host/v1", model="m", api_key=key)

    assert "SEC" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "not a url", "ftp://user:pw@host", "http://", "/v1", "http://[pw", None, 3]
)
def test_an_address_that_is_none_is_told_and_not_shown(url):
    with pytest.raises(ConfigurationError, match="base_url=") as caught:
        OpenAICompatibleJudge(base_url=url, model="m")

    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"model": ""},
        {"model": None},
        {"max_tokens": 0},
        {"context_window": 100},
        {"prompts": {"no_such_prompt": "text"}},
        {"prompts": {"reply_form": "no placeholder"}},
    ],
)
def test_wrong_settings_are_told_when_the_judge_is_built(settings):
    with pytest.raises(ConfigurationError):
        OpenAICompatibleJudge(**{"base_url": "http://host/v1", "model": "m", **settings})


def test_address_and_model_have_to_be_named():
    with pytest.raises(TypeError):
        OpenAICompatibleJudge("http://host/v1", "m")

"""What a judge needs to be built, how it says what is missing, and what it sends to whom."""

import sys

import anthropic
import openai
import pytest

from ragaliq.errors import ConfigurationError
from ragaliq.judges import ClaudeJudge, OpenAICompatibleJudge

KEY = "test-key-Zq81"
OPENAI_URL = "https://api.openai.com/v1"

claude_only = pytest.mark.parametrize("api", ["claude"], indirect=True)
openai_only = pytest.mark.parametrize("api", ["openai"], indirect=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": ""}, "model must name"),
        ({"model": "sk-ant-SECRET"}, "looks like an API key"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"prompts": {"no_such_prompt": "text"}}, "no_such_prompt"),
        *(({"api_key": key}, "white space") for key in ("SECRET\n", "SECRÉT", "S SECRET")),
        *(
            ({"base_url": url}, "base_url=")
            for url in (
                "",
                "ftp://user:SECRET@host",
                "http://[SECRET",
                "http://user:SECRET@host/v1",
            )
        ),
    ],
)
def test_a_setting_that_is_wrong_is_named_and_not_shown(api, settings, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        api.make(**{"base_url": "http://host/v1", "api_key": KEY, **settings})

    assert "SECR" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


async def test_the_callers_key_goes_to_the_server_and_no_other_does(server, judge_at, monkeypatch):
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", "of-the-environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://of-the-environment/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer of-the-environment")

    await judge_at(server).evaluate_relevance("a", "b")

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "of-the-environment" not in str(server.requests[0].headers)


# --- Claude -----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", None])
def test_without_a_key_it_says_what_to_set(monkeypatch, key):
    if key is not None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    with pytest.raises(ConfigurationError, match=r"no API key.*ANTHROPIC_API_KEY.*api_key="):
        ClaudeJudge(api_key=key)


@claude_only
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_AUTH_TOKEN", KEY),
        ("ANTHROPIC_CUSTOM_HEADERS", f"Authorization: Bearer {KEY}"),
    ],
)
async def test_the_sdks_environment_variables_are_enough(server, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)

    await ClaudeJudge().evaluate_relevance("a", "b")

    assert KEY in server.requests[0].headers["authorization"]


def test_a_profile_that_is_missing_is_an_error_that_names_the_simpler_way(monkeypatch, tmp_path):
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))

    with pytest.raises(ConfigurationError, match=r"not found.*ANTHROPIC_API_KEY"):
        ClaudeJudge()


@claude_only
async def test_a_client_of_the_callers_own_is_used_as_it_is_and_left_open(server):
    async with anthropic.AsyncAnthropic(
        api_key=KEY, base_url=server.url, default_headers={"x-team": "blue"}
    ) as client:
        judge = ClaudeJudge(client=client, max_tokens=64_000)
        await judge.evaluate_relevance("a", "b")
        await judge.aclose()
        assert not client.is_closed()

    assert server.requests[0].headers["x-team"] == "blue"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"client": anthropic.AsyncAnthropic}, "no API key"),
        ({"client": lambda: anthropic.Anthropic(api_key=KEY)}, "asynchronous"),
        *(
            ({"client": lambda: anthropic.AsyncAnthropic(api_key="other"), **extra}, "client=")
            for extra in ({"api_key": KEY}, {"base_url": "http://x"}, {"max_retries": 1})
        ),
    ],
)
def test_a_client_that_cannot_be_used_is_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        ClaudeJudge(**{**settings, "client": settings["client"]()})


# --- Chat completions -------------------------------------------------------------------------


def test_without_its_sdk_the_judge_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)

    with pytest.raises(ConfigurationError, match=r"pip install 'ragaliq\[openai\]'") as caught:
        OpenAICompatibleJudge(base_url="http://localhost/v1", model="m")
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@openai_only
async def test_no_key_is_sent_unless_one_is_given(server, judge_at, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    if not openai.__version__.startswith("2"):  # openai 2 need not read this variable
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-team: blue")

    await judge_at(server, api_key=None).evaluate_relevance("a", "b")

    headers = server.requests[0].headers
    assert "authorization" not in headers
    assert headers.get("x-team", "blue") == "blue"


@pytest.mark.parametrize(
    "settings",
    [{"base_url": None}, {"context_window": 100}, {"prompts": {"reply_form": "no placeholder"}}],
)
def test_further_settings_that_are_wrong_are_refused(settings):
    with pytest.raises(ConfigurationError):
        OpenAICompatibleJudge(**{"base_url": "http://host/v1", "model": "m", **settings})


def test_openai_itself_is_not_asked_without_a_key(monkeypatch):
    with pytest.raises(ConfigurationError, match=r"OPENAI_API_KEY.*api_key="):
        OpenAICompatibleJudge(base_url=OPENAI_URL, model="m")

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    judge = OpenAICompatibleJudge(base_url=OPENAI_URL, model="m")
    assert judge._headers == {"Authorization": f"Bearer {KEY}"}

"""What the judge needs to be built, and how it says what is missing."""

from __future__ import annotations

import json

import anthropic
import pytest

from ragaliq.errors import ConfigurationError
from ragaliq.judges import ClaudeJudge
from ragaliq.testing import MessagesServer

KEY = "test-key-Zq81"


def test_without_a_key_it_says_what_to_set():
    with pytest.raises(ConfigurationError, match=r"ANTHROPIC_API_KEY.*api_key="):
        ClaudeJudge()


@pytest.mark.parametrize("key", ["", None])
def test_an_empty_key_is_no_key(monkeypatch, key):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    with pytest.raises(ConfigurationError, match="no API key"):
        ClaudeJudge(api_key=key)


@pytest.mark.parametrize("key", ["sk-SECRET\n", " sk-SECRET", "sk-SECRÉT", "sk SECRET"])
def test_a_key_that_cannot_be_sent_is_told_and_not_shown(key):
    with pytest.raises(ConfigurationError, match="white space") as caught:
        ClaudeJudge(api_key=key)

    assert "SECR" not in str(caught.value)


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
async def test_the_sdks_environment_variables_are_enough(server, monkeypatch, variable):
    monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)

    await ClaudeJudge().evaluate_relevance("a", "b")

    assert KEY in server.requests[0].headers["authorization"]


async def test_a_header_of_the_applications_own_is_enough(server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "Authorization: Bearer from-a-gateway")

    await ClaudeJudge(base_url=server.url).evaluate_relevance("a", "b")

    assert server.requests[0].headers["authorization"] == "Bearer from-a-gateway"


def test_a_profile_that_is_missing_is_told_with_the_simpler_way(monkeypatch, tmp_path):
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))

    with pytest.raises(ConfigurationError, match=r"not found.*ANTHROPIC_API_KEY"):
        ClaudeJudge()


def test_a_profile_on_disk_is_enough(monkeypatch, tmp_path):
    configs = tmp_path / "configs"
    configs.mkdir()
    profile = {
        "organization_id": "org",
        "authentication": {"type": "oidc_federation", "federation_rule_id": "rule"},
    }
    (configs / "default.json").write_text(json.dumps(profile))
    token = tmp_path / "token"
    token.write_text("identity")
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_IDENTITY_TOKEN_FILE", str(token))

    assert ClaudeJudge().name == "claude"


@pytest.mark.parametrize("url", ["", "not a url", "ftp://host", "http://", "/v1"])
def test_an_address_that_is_none_is_told(url):
    with pytest.raises(ConfigurationError, match="base_url="):
        ClaudeJudge(api_key=KEY, base_url=url)


@pytest.mark.parametrize(
    "settings", [{"model": ""}, {"max_tokens": 0}, {"prompts": {"no_such_prompt": "text"}}]
)
def test_wrong_settings_are_told_when_the_judge_is_built(settings):
    with pytest.raises(ConfigurationError):
        ClaudeJudge(api_key=KEY, **settings)


async def test_a_client_of_the_callers_own_is_used_as_it_is_and_left_open(server):
    async with anthropic.AsyncAnthropic(
        api_key=KEY, base_url=server.url, default_headers={"x-team": "blue"}
    ) as client:
        judge = ClaudeJudge(client=client, max_tokens=64_000)
        await judge.evaluate_relevance("a", "b")
        await judge.aclose()
        assert not client.is_closed()

    assert server.requests[0].headers["x-team"] == "blue"


def test_a_client_without_credentials_is_refused():
    with pytest.raises(ConfigurationError, match="no API key"):
        ClaudeJudge(client=anthropic.AsyncAnthropic())


@pytest.mark.parametrize(
    "settings", [{"api_key": KEY}, {"base_url": "http://x"}, {"max_retries": 1}]
)
def test_a_client_excludes_the_settings_it_brings_along(settings):
    client = anthropic.AsyncAnthropic(api_key="other")
    with pytest.raises(ConfigurationError, match="client="):
        ClaudeJudge(client=client, **settings)


def test_a_synchronous_client_is_refused():
    client = anthropic.Anthropic(api_key=KEY)
    with client, pytest.raises(ConfigurationError, match="asynchronous"):
        ClaudeJudge(client=client)


async def test_prompts_can_be_replaced_one_by_one(server, judge_at):
    judge = judge_at(
        server,
        prompts={"relevance": "---\nversion: 7\n---\nIs {{answer}} an answer to {{question}}?"},
    )
    await judge.evaluate_relevance("Q?", "A.")

    request = server.requests[0]
    assert request.text == ("Is <answer>\nA.\n</answer> an answer to <question>\nQ?\n</question>?")
    assert "untrusted" in request.system
    assert judge.prompt_versions["relevance"] == "7"
    assert judge.prompt_versions["verify_claims"] == "2"


async def test_the_system_prompt_names_application_text_as_untrusted(server, judge):
    await judge.extract_statements("Q", "A")

    assert "untrusted data" in server.requests[0].system


async def test_the_default_key_does_not_leave_for_another_server(server, judge_at, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-the-environment")

    await judge_at(server).evaluate_relevance("a", "b")

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert isinstance(server, MessagesServer)

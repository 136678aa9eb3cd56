"""Proxies, addresses and loggers around a judge."""

import logging

import pytest

from ragaliq import ChatModelJudge, ModelReply
from ragaliq.errors import ConfigurationError
from ragaliq.judges import ClaudeJudge, OpenAICompatibleJudge

SCORE = '{"reasoning": "so", "score": 0.5}'
openai_only = pytest.mark.parametrize("api", ["openai"], indirect=True)


@pytest.fixture
def no_socks(monkeypatch):
    """An environment without the library that SOCKS proxies need."""
    import sys

    monkeypatch.setitem(sys.modules, "socksio", None)


@pytest.mark.usefixtures("no_socks")
@pytest.mark.parametrize(
    ("variable", "proxy"),
    [
        ("ALL_PROXY", "socks5://user:SECRET@proxy:1080"),
        ("all_proxy", "socks5h://proxy:1080"),
        ("HTTPS_PROXY", "socks://proxy:1080"),
        ("ALL_PROXY", "quic://proxy"),
    ],
)
@pytest.mark.parametrize("host", ["http://127.0.0.1:9/v1", "https://models.example.org/v1"])
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(
    api, monkeypatch, variable, proxy, host
):
    monkeypatch.setenv(variable, proxy)
    with pytest.raises(ConfigurationError, match=variable) as caught:
        api.make(base_url=host, api_key="k")
    assert "SECRET" not in str(caught.value)


async def test_with_the_root_logger_at_debug_no_text_is_logged(server, judge, caplog):
    caplog.set_level(logging.DEBUG)
    await judge.verify_claims(["PRIVATE-CLAIM"], ["PRIVATE-CONTEXT"])

    assert server.requests
    assert "PRIVATE" not in caplog.text


async def test_the_application_s_own_requests_are_logged_as_it_likes(server, judge, caplog):
    caplog.set_level(logging.DEBUG)
    await judge.verify_claims(["PRIVATE-CLAIM"], ["PRIVATE-CONTEXT"])
    for name in ("openai._base_client", "anthropic._base_client"):
        logging.getLogger(name).debug("Request options: OWN")
    assert caplog.text.count("OWN") == 2


async def test_a_framework_s_client_logs_no_text_of_the_judge(caplog):
    caplog.set_level(logging.DEBUG)

    async def complete(system, user):
        logging.getLogger("openai._base_client").debug("Request options: %s", user)
        return ModelReply(text=SCORE)

    await ChatModelJudge(complete, model="m").evaluate_relevance("PRIVATE", "PRIVATE")
    assert "PRIVATE" not in caplog.text


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (
            "https://team.openai.azure.com/openai/deployments/gpt-5-mini?api-version=2024-10-21",
            "https://team.openai.azure.com/openai/v1",
        ),
        ("https://team.openai.azure.com/", "https://team.openai.azure.com/openai/v1"),
        ("https://team.services.ai.azure.com/models", "/openai/v1"),
        ("https://host/v1?api-version=2024-10-21", "must not hold a query"),
    ],
)
def test_an_address_of_azure_s_older_form_is_refused_with_the_way_to_write_it(
    monkeypatch, url, says
):
    with pytest.raises(ConfigurationError, match="base_url=") as caught:
        OpenAICompatibleJudge(base_url=url, model="gpt-5-mini", api_key="k")
    assert says in str(caught.value)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ConfigurationError, match="OPENAI_BASE_URL"):
        OpenAICompatibleJudge(model="gpt-5-mini", api_key="k")


def test_azure_s_address_is_taken():
    judge = OpenAICompatibleJudge(
        base_url="https://team.openai.azure.com/openai/v1/", model="gpt-5-mini", api_key="k"
    )
    assert judge.costs_money


@openai_only
async def test_the_address_in_the_environment_gets_the_key_of_the_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    await OpenAICompatibleJudge(model="m").evaluate_relevance("a", "b")
    assert server.requests[0].headers["authorization"] == "Bearer of-the-environment"


def test_openai_is_the_default_address_and_has_a_large_window(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    judge = OpenAICompatibleJudge(model="gpt-5-mini")
    assert judge.provider == "openai"
    assert judge.max_context_chars == 192_000
    assert judge.max_claims == ClaudeJudge.max_claims

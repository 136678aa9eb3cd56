"""The loopback servers refuse what the APIs refuse, or no test would see a request go wrong."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

PATHS = {"claude": "/v1/messages", "openai": "/chat/completions"}
HELLO = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hello"}]}
CACHED = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
OPEN = {"type": "object", "properties": {}}
NAMED = {"name": "s", "strict": True, "schema": OPEN}


@pytest.mark.parametrize(
    ("api", "change"),
    [
        *((api, {"messages": [{"role": "user", "content": "  "}]}) for api in PATHS),
        ("claude", {"temperature": 0}),
        ("claude", {"output_config": {"format": {"schema": OPEN}}}),
        ("claude", {"messages": [{"role": "user", "content": [CACHED] * 5}]}),
        ("openai", {"messages": [{"role": "nobody", "content": "a"}]}),
        ("openai", {"response_format": {"type": "json_schema"}}),
        ("openai", {"response_format": {"type": "json_schema", "json_schema": NAMED}}),
    ],
    indirect=["api"],
)
def test_a_request_that_the_api_refuses_is_refused(api, server, change):
    data = json.dumps(HELLO | change).encode()
    request = urllib.request.Request(server.url + PATHS[api.name], data, {"x-api-key": "k"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=5)
    with refused.value as error:
        assert error.code == 400
        assert json.load(error)["error"]["type"] == "invalid_request_error"

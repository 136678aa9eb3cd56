from __future__ import annotations

import pytest

from ragaliq import ConfigurationError
from ragaliq.telemetry import ContentPolicy

OTEL = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def modes(capture=None, **environ):
    policy = ContentPolicy.resolve(capture_content=capture, environ=environ)
    return policy.on_spans, policy.on_events


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", (False, False)),
        ("true", (True, True)),
        ("1", (True, True)),
        ("false", (False, False)),
        ("NO_CONTENT", (False, False)),
        ("SPAN_ONLY", (True, False)),
        ("event_only", (False, True)),
        ("SPAN_AND_EVENT", (True, True)),
    ],
)
def test_the_environment_opts_in(value, expected):
    for name in ("RAGALIQ_CAPTURE_CONTENT", OTEL):
        assert modes(**{name: value}) == expected


def test_the_argument_wins_over_ragaliqs_variable_which_wins_over_opentelemetrys():
    assert modes(capture=False, RAGALIQ_CAPTURE_CONTENT="true") == (False, False)
    assert modes(RAGALIQ_CAPTURE_CONTENT="false", **{OTEL: "SPAN_AND_EVENT"}) == (False, False)


@pytest.mark.parametrize("what", ["INPUTS", "OUTPUT_TEXT", "PROMPTS", "EMBEDDINGS_TEXT"])
def test_openinference_hide_variables_force_it_off(what):
    name = f"OPENINFERENCE_HIDE_{what}"
    assert modes(capture=True, **{name: "true"}) == (False, False)
    assert modes(capture=True, **{name: "false"}) == (True, True)


def test_an_unclear_value_is_refused_by_name():
    with pytest.raises(ConfigurationError, match="RAGALIQ_CAPTURE_CONTENT"):
        modes(RAGALIQ_CAPTURE_CONTENT="sometimes")


def test_text_is_cut_with_a_sign_that_it_was():
    policy = ContentPolicy()
    assert policy.text("x" * 5, "claim", 5) == "xxxxx"
    assert policy.text("x" * 6, "claim", 5) == "xxxx…"


def test_redaction_comes_before_cutting():
    seen = []

    def redact(text, kind):
        seen.append((text, kind))
        return text.replace("secret", "[…]")

    assert ContentPolicy(redact=redact).text("a secret" * 9, "evidence", 12) is not None
    assert seen == [("a secret" * 9, "evidence")]


def test_a_failing_redactor_drops_the_text():
    def redact(text, kind):
        raise ValueError(text)

    assert ContentPolicy(redact=redact).text("secret", "claim", 100) is None

"""The demos as users run them: scripts, with and without a collector, with and without a judge."""

import re

import pytest
from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings

from free_ports import free_port
from handbook.questions import load_questions
from loopback import MessagesServer

pytestmark = pytest.mark.slow

SCRIPTS = ["langchain_demo.py", "llama_index_demo.py"]
QUESTIONS = load_questions()
EVALUATIONS = 2 * len(QUESTIONS)  # two metrics


@pytest.mark.parametrize("script", SCRIPTS)
def test_demo_shows_verdicts_statuses_and_telemetry_without_key_or_network(plain_runs, script):
    done = plain_runs(script)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for verdict in ("+1] supported", "] contradicted", "] not enough info"):
        assert verdict in done.stdout
    for status in ("scored", "no_claims", "answer_refused"):
        assert re.search(rf"\b{status}\b", done.stdout)
    assert f"Runs started: {len(QUESTIONS)}   evaluated {len(QUESTIONS)}\n" in done.stdout
    assert all(f"{item.id}  (prerecorded:" in done.stdout for item in QUESTIONS)
    assert re.search(rf"gen_ai\.evaluation\.result\W+{EVALUATIONS}\b", done.stdout)
    assert f"own spans: {len(QUESTIONS)}" in done.stdout
    assert re.search(r"Content: 0 of \d+ emitted strings", done.stdout)
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_demo_names_exactly_the_answers_labelled_as_wrongly_judged(plain_runs, script):
    labelled = ", ".join(item.id for item in QUESTIONS if item.kind == "judge_gets_wrong")
    assert f"The judge gets wrong: {labelled}.\n" in plain_runs(script).stdout


def test_captured_content_is_found_in_the_telemetry(run_demo):
    done = run_demo(SCRIPTS[0], RAGALIQ_CAPTURE_CONTENT="true")
    assert done.returncode == 0, done.stderr
    assert re.search(r"Content: [1-9]\d* of \d+ .* content capture is switched on", done.stdout)


async def test_demo_exports_to_the_endpoint_that_is_set(run_demo):
    port = free_port()
    settings = OtelTapHttpProtobufReceiverSettings(http_port=port)
    async with OtelTapHttpProtobufReceiver(settings) as receiver:
        endpoint = f"http://127.0.0.1:{port}"
        done = run_demo(SCRIPTS[0], OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        assert done.returncode == 0, done.stderr
        assert f"Spans, events and metrics were sent to {endpoint}" in done.stdout
        await receiver.await_trace(lambda span: span.name.startswith("claim "), timeout=10)
        await receiver.await_log(
            lambda record: record.event_name == "gen_ai.evaluation.result", timeout=10
        )


def test_a_collector_that_is_down_is_an_error_that_shows_no_credentials(run_demo):
    endpoint = f"http://user:secret@127.0.0.1:{free_port()}"
    done = run_demo(
        SCRIPTS[0], OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_EXPORTER_OTLP_TIMEOUT="1"
    )
    assert done.returncode == 1
    assert "demo: the export to http://127.0.0.1:" in done.stderr
    assert "secret" not in done.stderr + done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_with_a_key_the_judge_is_claude(run_demo, script):
    with MessagesServer() as server:
        done = run_demo(script, ANTHROPIC_API_KEY="not-a-real-key", ANTHROPIC_BASE_URL=server.url)
        requests = len(server.requests)
    assert done.returncode == 0, done.stderr
    assert "judge: claude" in done.stdout
    # Claims, then verdicts; an answer that declines has no claims.
    assert requests >= 2 * (len(QUESTIONS) - 1)
    assert re.search(rf"Judge: {requests} requests, [1-9]\d* tokens, cost 0\.\d*[1-9]", done.stdout)


def test_a_judge_that_cannot_be_reached_is_an_error_that_shows_no_key(run_demo):
    done = run_demo(
        SCRIPTS[0],
        ANTHROPIC_API_KEY="not-a-real-key",
        ANTHROPIC_BASE_URL=f"http://127.0.0.1:{free_port()}",
    )
    assert done.returncode == 1
    assert "judge: claude" in done.stdout
    assert re.search(
        rf"demo: \d+ of {EVALUATIONS} evaluations failed; the first: judge_error", done.stderr
    )
    assert "not-a-real-key" not in done.stderr + done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_unknown_arguments_are_refused_and_help_says_what_the_demo_does(run_demo, script):
    assert run_demo(script, arguments=["--fast"]).returncode == 2
    done = run_demo(script, arguments=["--help"])
    assert done.returncode == 0
    assert "ragaliq attached" in done.stdout


def test_a_missing_dependency_is_named_with_what_to_do(fresh_run, tmp_path):
    (tmp_path / "rich.py").write_text("raise ImportError(\"No module named 'rich'\")")
    done = fresh_run(SCRIPTS[0])
    assert done.returncode == 1
    assert done.stderr.startswith("demo: No module named 'rich'. `make demo` installs")

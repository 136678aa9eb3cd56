"""`ragaliq doctor`: the installation, the settings, and a test of the judge."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated
from urllib.parse import urlsplit

import typer
from opentelemetry import _logs, metrics, trace
from rich.table import Table

from ragaliq._private import is_stand_in
from ragaliq.cli.console import (
    ExitCode,
    errors,
    escape_for_terminal,
    output,
)
from ragaliq.cli.options import BaseUrl, Judge, Model, choose_judge
from ragaliq.core.annexes import annex
from ragaliq.core.checks import did_you_mean, naming
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, RagaliqError
from ragaliq.evaluators import FaithfulnessEvaluator
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.calibration import Calibration
from ragaliq.judges.resolve import ENV_MODELS
from ragaliq.reports.wording import cost_of
from ragaliq.scoring.settings import (
    ENV_BROKER_URL,
    ENV_CALIBRATION,
    ENV_HEARTBEAT,
    chosen_judge,
    read_judge_settings,
    settings_problems,
    settings_variables,
)
from ragaliq.telemetry import names
from ragaliq.telemetry.content import ContentPolicy
from ragaliq.telemetry.emit import TelemetryOptions

_PACKAGES = (
    "ragaliq",
    "langchain-ragaliq",
    "llama-index-evaluation-ragaliq",
    "langchain-core",
    "langchain",
    "langgraph",
    "llama-index-core",
    "anthropic",
    "openai",
    "opentelemetry-sdk",
    "opentelemetry-exporter-otlp-proto-http",
    "openinference-instrumentation-langchain",
    "openinference-instrumentation-llama-index",
    "pyarrow",
    "pandas",
    "faststream",
    "redis",
)
_SECRETS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "LANGFUSE_SECRET_KEY",
    "LANGSMITH_API_KEY",
    "PHOENIX_API_KEY",
)
_ENDPOINTS = (
    "ANTHROPIC_BASE_URL",
    "RAGALIQ_BROKER_URL",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "PHOENIX_COLLECTOR_ENDPOINT",
    "LANGFUSE_HOST",
    "LANGSMITH_ENDPOINT",
    "MLFLOW_TRACKING_URI",
)
_EXAMPLE = RAGTestCase(
    query="When is the shop open?",
    context=["The shop is open from 9 to 17 on weekdays."],
    response="The shop is open from 9 to 17. It was founded in 1987.",
)


def doctor(
    *,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not call the judge.")] = False,
) -> int:
    """Check settings and judge, and list what is installed. Faults come first."""
    problems = environment_problems()
    for problem in problems:
        errors.print(f"wrong: {problem}")
    code = ExitCode.OK
    if not offline:
        try:
            asked = choose_judge(judge, model=model, base_url=base_url)
            asked.announce()
            code = _try(asked.judge)
        except RagaliqError as error:
            who = f"judge {judge}: " if judge else "the judge: "
            if str(error) not in problems:
                errors.print(f"{who}{error}")
            code = ExitCode.JUDGE
    if not problems and code is ExitCode.OK:
        output.print("nothing is wrong here")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row("Python", platform.python_version())
    rows = (*_packages(), *_environment(os.environ, known_variables()), *_providers(os.environ))
    for name, state in rows:
        table.add_row(name, escape_for_terminal(state, limit=100))
    output.print()
    output.print(table)
    return ExitCode.USAGE if problems else code


def _packages() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            yield package, "not installed"


def _environment(environ: Mapping[str, str], known: Collection[str]) -> Iterator[tuple[str, str]]:
    for name in _SECRETS:
        yield name, "set" if environ.get(name) else "not set"
    for name in _ENDPOINTS:
        if environ.get(name):
            yield name, _without_credentials(environ[name])
    for name in sorted(environ):
        if name.startswith("RAGALIQ_") and name not in _ENDPOINTS:
            # A misspelt variable may contain a password.
            yield (
                name,
                _without_secrets(environ[name]) if name in known else "set, but nothing reads it",
            )


def _providers(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """State of each signal's provider in a process that starts here."""
    for signal, kind, provider in (
        ("spans", "TRACES", trace.get_tracer_provider()),
        ("metrics", "METRICS", metrics.get_meter_provider()),
        ("events", "LOGS", _logs.get_logger_provider()),
    ):
        endpoint = environ.get(f"OTEL_EXPORTER_OTLP_{kind}_ENDPOINT") or environ.get(
            "OTEL_EXPORTER_OTLP_ENDPOINT"
        )
        if not is_stand_in(provider):
            state = f"a real provider: {type(provider).__module__}.{type(provider).__name__}"
        elif endpoint:
            state = (
                f"no provider yet; commands and workers send to {_without_credentials(endpoint)}"
            )
        else:
            state = "no provider: nothing is emitted before the application sets one up"
        yield f"OpenTelemetry {signal}", state


def _without_secrets(value: str) -> str:
    is_address = "://" in value and not value.startswith("sqlite:")
    return _without_credentials(value) if is_address else value


def _without_credentials(url: str) -> str:
    """Scheme, host and port: user names, passwords, paths and queries may be secrets."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "set, but no URL"
    if not parts.hostname:
        return "set, but no URL"
    return f"{parts.scheme}://{parts.hostname}{port}"


def _try(judge: LLMJudge) -> ExitCode:
    result = FaithfulnessEvaluator().evaluate_sync(_EXAMPLE, judge)
    verdicts = [claim.verdict for claim in result.claims]
    usage = result.usage
    spent = f"{usage.total_tokens:,} tokens, {cost_of(usage)}"
    # One sentence is in the context word by word, the other is not in it at all.
    if verdicts[:1] == ["SUPPORTED"] and "SUPPORTED" not in verdicts[1:]:
        output.print(f"judge {judge.name} works: it tells a supported claim from another, {spent}")
        return ExitCode.OK
    output.print(f"judge {judge.name}: {spent}")
    errors.print(
        f"the judge answers, but finds {verdicts} where the first claim is supported and the "
        "second is not: use another model"
    )
    return ExitCode.JUDGE


PREFIX = "RAGALIQ_"


def known_variables() -> frozenset[str]:
    """Names of all our variables."""
    return settings_variables() | {
        ENV_BROKER_URL,
        ENV_HEARTBEAT,
        ENV_MODELS,
        names.ENV_CAPTURE_CONTENT,
        names.ENV_RELATION,
        names.ENV_CLAIM_DETAIL,
        names.ENV_ON_UNSAMPLED,
    }


def environment_problems() -> list[str]:
    """All problems, one per line. The variables are named, and no secret is shown."""
    problems = [*_unknown(), *settings_problems()]
    for check in _checks():
        try:
            check()
        except ConfigurationError as error:
            problems.append(str(error))
    return list(dict.fromkeys(problems))


def _unknown() -> Iterator[str]:
    known = known_variables()
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            meant = did_you_mean(name, known, at_least=0.8)
            yield f"{name}: nothing reads a variable of this name{meant}"


def _load_calibration() -> None:
    with naming(ENV_CALIBRATION):
        Calibration.load(os.environ[ENV_CALIBRATION])


def _checks() -> Iterator[Callable[[], object]]:
    # Each does what a monitor or a command would do, and so raises the same errors.
    yield lambda: chosen_judge(read_judge_settings(), None, None)
    if os.environ.get(ENV_CALIBRATION):
        # Independent of problems with the judge: the file must exist.
        yield _load_calibration
    if os.environ.get(ENV_BROKER_URL):
        yield lambda: annex("worker.brokers").broker_at(None)
    yield lambda: TelemetryOptions(claim_detail="spans", on_unsampled="metrics")
    yield lambda: TelemetryOptions(relation="link", on_unsampled="metrics")
    yield lambda: TelemetryOptions(relation="link", claim_detail="spans")
    yield ContentPolicy.resolve

"""The pytest plugin: assertions on RAG answers, with a cap on their cost.

pytest loads this module in every run of an environment with ragaliq, so it imports nothing slow
before a test needs it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

try:
    import pytest
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    raise ModuleNotFoundError(
        "ragaliq.pytest_plugin needs pytest: pip install pytest", name="pytest"
    ) from None

from ragaliq.pytest_plugin.current import OPTIONS, RUNS, SESSION

if TYPE_CHECKING:
    from ragaliq.judges.base import LLMJudge
    from ragaliq.pytest_plugin.assertion import RagAssertionError, RagSession, assert_rag

__all__ = ["RagAssertionError", "assert_rag"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from ragaliq.pytest_plugin import assertion

        return getattr(assertion, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options to the command line, and under the same names to the configuration file."""
    group = parser.getgroup("ragaliq", "scoring RAG answers")
    for name, meaning in OPTIONS.items():
        group.addoption(f"--{name.replace('_', '-')}", dest=name, default=None, help=meaning)
        parser.addini(name, meaning, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and give `assert_rag` access to the run."""
    RUNS.append(config)
    config.addinivalue_line("markers", "rag(judge=..., model=...): who judges in this test")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the judges."""
    if config in RUNS:  # not where another plugin failed before this one
        RUNS.remove(config)
    if session := config.stash.get(SESSION, None):
        session.close()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts of a pytest-xdist worker to the reporting process."""
    started = session.config.stash.get(SESSION, None)
    output = getattr(session.config, "workeroutput", None)
    if started is not None and output is not None:
        output["ragaliq"] = started.records


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the counts of a pytest-xdist worker."""
    counted = getattr(node, "workeroutput", {}).get("ragaliq")
    if counted:
        _session(node.config).count_records(counted)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print scores and cost; nothing in a run that scored nothing."""
    session = config.stash.get(SESSION, None)
    if session is not None and session.summary.records:
        terminalreporter.section("ragaliq")
        for line in session.lines():
            terminalreporter.line(line)


@pytest.fixture
def rag_judge(request: pytest.FixtureRequest) -> Generator[LLMJudge, None, None]:
    """Judge of this run: that of the test's `rag` marker, else of `--ragaliq-judge`.

    While a test uses it, `assert_rag` uses this judge by default.
    """
    with _judging(request.node) as judge:
        yield judge


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Apply the test's `rag` marker to `assert_rag`, also without the fixture."""
    if item.get_closest_marker("rag") is None:
        return (yield)
    with _judging(item):
        return (yield)


@contextmanager
def _judging(test: Any) -> Iterator[LLMJudge]:
    """Use the judge of a test's marker; a wrong marker or judge fails the test in one line."""
    from ragaliq.errors import ConfigurationError

    marker = test.get_closest_marker("rag")
    args, asked = (marker.args, marker.kwargs) if marker is not None else ((), {})
    # Refuse anything else: a typo would silently select another judge.
    given = [repr(value) for value in args]
    given += [f"{name}=" for name in asked if name not in ("judge", "model")]
    if given:
        wrong = f"@pytest.mark.rag takes judge=... and model=..., not {', '.join(given)}"
        raise pytest.fail.Exception(wrong, pytrace=False)
    with ExitStack() as stack:
        try:
            judge = stack.enter_context(_session(test.config).judging(**asked))
        except ConfigurationError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        yield judge


def _session(config: pytest.Config) -> RagSession:
    from ragaliq.pytest_plugin.assertion import session_of

    return session_of(config)

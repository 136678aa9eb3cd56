"""The pytest plugin: assertions on RAG answers, with a ceiling on what they may cost.

pytest loads this module in every run in which ragaliq is installed, so it imports nothing that
takes time before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

try:
    import pytest
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    raise ModuleNotFoundError(
        "ragaliq.pytest_plugin needs pytest: pip install pytest", name="pytest"
    ) from None

if TYPE_CHECKING:
    from ragaliq.judges.base import LLMJudge
    from ragaliq.pytest_plugin.assertion import RagAssertionError, RagSession, assert_rag

__all__ = ["RagAssertionError", "assert_rag"]

OPTIONS = {
    "ragaliq_judge": "who decides: local (the default) or claude",
    "ragaliq_model": "Claude's model",
    "ragaliq_max_cost": "US dollars that all tests together may spend on the judge",
    "ragaliq_sinks": "where results are stored: sqlite:///path, several with blanks between them",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        from ragaliq.pytest_plugin import assertion

        return getattr(assertion, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options for the command line, and under the same names for the configuration file."""
    group = parser.getgroup("ragaliq", "scoring RAG answers")
    for name, meaning in OPTIONS.items():
        group.addoption(f"--{name.replace('_', '-')}", dest=name, default=None, help=meaning)
        parser.addini(name, meaning, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and let `assert_rag` find the run it is in."""
    global _config  # noqa: PLW0603 - pytest has no other way to a run from inside a test
    # A test of tests runs pytest within pytest (`pytester`): then the outer one goes on after it.
    config.stash[_OUTER] = _config
    _config = config
    config.addinivalue_line("markers", "rag(judge=..., model=...): who judges in this test")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of the judges."""
    global _config  # noqa: PLW0603 - as above
    _config = config.stash.get(_OUTER, None)
    if session := config.stash.get(_KEY, None):
        session.close()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker of pytest-xdist: send what was counted to the process that reports."""
    started = session.config.stash.get(_KEY, None)
    output = getattr(session.config, "workeroutput", None)
    if started is not None and output is not None:
        output["ragaliq"] = started.records


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """With pytest-xdist's workers: add what one of them counted."""
    counted = getattr(node, "workeroutput", {}).get("ragaliq")
    if counted:
        _session(node.config).count_records(counted)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was scored and spent; nothing in a run that scored nothing."""
    session = config.stash.get(_KEY, None)
    if session is not None and session.summary.records:
        terminalreporter.section("ragaliq")
        for line in session.lines():
            terminalreporter.line(line)


@pytest.fixture
def rag_judge(request: pytest.FixtureRequest) -> Generator[LLMJudge, None, None]:
    """The judge of this run: `--ragaliq-judge`, or what the test's `rag` marker says.

    While a test uses it, `assert_rag` asks this judge by default.
    """
    marker = request.node.get_closest_marker("rag")
    with _session(request.config).judging(**_asked(marker)) as judge:
        yield judge


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let the test's `rag` marker hold for `assert_rag` too where no fixture is used."""
    marker = item.get_closest_marker("rag")
    if marker is None:
        return (yield)
    with _session(item.config).judging(**_asked(marker)):
        return (yield)


def _asked(marker: pytest.Mark | None) -> dict[str, Any]:
    """What a `rag` marker says."""
    if marker is None:
        return {}
    # Anything else is refused: another judge than was meant would decide.
    if marker.args or not marker.kwargs.keys() <= {"judge", "model"}:
        from ragaliq.errors import ConfigurationError

        given = [repr(value) for value in marker.args]
        given += [f"{name}=" for name in marker.kwargs if name not in ("judge", "model")]
        raise ConfigurationError(
            f"@pytest.mark.rag takes judge=... and model=..., not {', '.join(given)}"
        )
    return dict(marker.kwargs)


def current_session() -> RagSession | None:
    """The session of the run that goes on, or None outside pytest."""
    return None if _config is None else _session(_config)


def _session(config: pytest.Config) -> RagSession:
    from ragaliq.pytest_plugin.assertion import RagSession

    session = config.stash.get(_KEY, None)
    if session is None:
        session = RagSession(config)
        config.stash[_KEY] = session
    return session


_KEY: pytest.StashKey[RagSession] = pytest.StashKey()
_OUTER: pytest.StashKey[pytest.Config | None] = pytest.StashKey()
_config: pytest.Config | None = None

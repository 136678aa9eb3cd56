"""The API pages show every public name, and every argument there has a description."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from langchain_ragaliq import RagaliqCallbackHandler

ROOT = Path(__file__).parents[2]
TEXT = "\n".join(page.read_text() for page in (ROOT / "docs/pages/api").glob("*.md"))
SHOWN = re.findall(r"^::: ([\w.]+)$", TEXT, re.MULTILINE)
MODULES = """ragaliq ragaliq.datasets ragaliq.evaluators ragaliq.guards ragaliq.judges
    ragaliq.lab ragaliq.live ragaliq.pytest_plugin ragaliq.records ragaliq.reports
    ragaliq.statistics ragaliq.telemetry ragaliq.testing ragaliq.traces ragaliq.worker
    langchain_ragaliq llama_index.evaluation.ragaliq""".split()
CONFIGURED = """Monitor TelemetryOptions Sampling Budget RateLimits CircuitBreaker Guard
    BrokerExecutor WorkerSettings RagaliqCallbackHandler""".split()
WITHOUT_A_PLACE = {"ragaliq.__version__", "ragaliq.telemetry"}


def public(module):
    home = import_module(module)
    return [(name, getattr(home, name)) for name in home.__all__]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_its_place(module):
    homes = {name.rpartition(".")[2] for name in SHOWN}
    if module in SHOWN:
        return  # shown whole
    names = {f"{module}.{name}" for name, _ in public(module)} - WITHOUT_A_PLACE
    errors = {name for name, _ in public("ragaliq.errors")} if "ragaliq.errors" in SHOWN else set()
    assert {name for name in names if name.rpartition(".")[2] not in homes | errors} == set()


def test_no_name_is_shown_twice_or_made_up():
    assert len(SHOWN) == len(set(SHOWN))
    for name in SHOWN:
        module, _, last = name.rpartition(".")
        try:
            import_module(name)
        except ImportError:
            assert hasattr(import_module(module), last), name


@pytest.mark.parametrize("name", CONFIGURED)
def test_every_argument_of_what_a_user_configures_is_described(name):
    configured = getattr(import_module("ragaliq"), name, RagaliqCallbackHandler)
    text = inspect.getdoc(configured)
    arguments = [each.name for each in inspect.signature(configured).parameters.values()]
    assert arguments
    assert [
        each for each in arguments if not re.search(rf"^ *\*{{0,2}}{each}: ", text, re.MULTILINE)
    ] == []

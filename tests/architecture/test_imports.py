"""Who may import whom, read from the source: deferred and annotation-only imports count too.

The layers inside `ragaliq` are import-linter contracts in `pyproject.toml`.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import ragaliq
import ragaliq.errors

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "ragaliq"
ADAPTERS = {
    "langchain_ragaliq": ROOT / "integrations/langchain/langchain_ragaliq",
    "llama_index.evaluation.ragaliq": ROOT
    / "integrations/llama-index/llama_index/evaluation/ragaliq",
}
FRAMEWORKS = (
    "langchain",
    "langchain_classic",
    "langchain_community",
    "langchain_core",
    "langchain_ragaliq",
    "langgraph",
    "llama_index",
    "llama_index_instrumentation",
    "workflows",
)


def imported_modules(source: str) -> Iterator[str]:
    """Every module a source file names in an import, wherever the import stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def framework_imports(source: str) -> list[str]:
    return [
        module
        for module in imported_modules(source)
        if any(is_within(module, framework) for framework in FRAMEWORKS)
    ]


def imports_behind_the_door(source: str) -> list[str]:
    return [
        module
        for module in imported_modules(source)
        if is_within(module, "ragaliq")
        and module not in {"ragaliq", "ragaliq.errors", "ragaliq.capture"}
    ]


def offences(folder: Path, check) -> dict[str, list[str]]:
    found = {
        str(path.relative_to(ROOT)): check(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.py"))
    }
    assert found, f"{folder} holds no source"
    return {path: modules for path, modules in found.items() if modules}


def test_the_library_imports_no_framework_not_even_for_annotations():
    assert offences(LIBRARY, framework_imports) == {}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_imports_nothing_behind_the_public_door(adapter):
    assert offences(ADAPTERS[adapter], imports_behind_the_door) == {}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_does_not_import_the_other_one(adapter):
    (other,) = ADAPTERS.keys() - {adapter}

    def other_imports(source: str) -> list[str]:
        return [module for module in imported_modules(source) if is_within(module, other)]

    assert offences(ADAPTERS[adapter], other_imports) == {}


def test_the_library_does_not_import_its_own_public_door():
    def door_imports(source: str) -> list[str]:
        return [module for module in imported_modules(source) if module == "ragaliq"]

    found = offences(LIBRARY, door_imports)
    found.pop("ragaliq/__init__.py", None)  # the door names its own submodules
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "import langchain_core",
        "from langchain_core.callbacks import BaseCallbackHandler",
        "def load():\n    import llama_index.core",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from langgraph import graph",
    ],
)
def test_a_framework_import_is_recognised_in_every_form(source):
    assert framework_imports(source)


def test_a_module_behind_the_door_is_told_from_the_door():
    assert imports_behind_the_door("from ragaliq.live.monitor import Monitor")
    assert imports_behind_the_door("import ragaliq.core")
    assert not imports_behind_the_door("from ragaliq import Monitor")
    assert not imports_behind_the_door("from ragaliq.errors import JudgeError")
    assert not imports_behind_the_door("from ragaliqx import anything")


def test_no_module_takes_the_place_of_a_public_name():
    """Importing `ragaliq.x` sets the attribute `x` of the package, whatever that was before."""
    modules = {path.stem for path in LIBRARY.iterdir() if path.stem != "__init__"}
    functions = set(ragaliq.__all__) - {"telemetry"}  # which is a module by design

    assert not modules & functions


def classes():
    for path in LIBRARY.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield path.relative_to(LIBRARY).as_posix(), node


def test_no_two_classes_have_one_name():
    names = Counter(node.name for _, node in classes())
    assert [name for name, number in names.items() if number > 1] == []


def test_every_error_that_is_ours_is_in_the_tree_of_one_module():
    """What pytest must see as a failed assertion, and what never leaves its module, is not."""
    tree = {name for name, value in vars(ragaliq.errors).items() if isinstance(value, type)}
    elsewhere = [
        node.name
        for path, node in classes()
        if path != "errors.py" and tree & {ast.unparse(base) for base in node.bases}
    ]
    assert elsewhere == []

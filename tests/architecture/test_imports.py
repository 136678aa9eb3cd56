"""Who may import whom, read from the source: deferred and annotation-only imports count too.

The layers inside `ragaliq` are import-linter contracts in `pyproject.toml`.
"""

import ast
from collections import Counter
from collections.abc import Callable
from functools import cache
from graphlib import CycleError, TopologicalSorter
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


def imported_modules(tree: ast.Module) -> list[str]:
    """Every module a source file names in an import, wherever the import stands."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append("." * node.level + (node.module or ""))
    return found


def public_classes(tree: ast.Module) -> list[ast.ClassDef]:
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return [node for node in classes if not node.name.startswith("_")]


@cache
def sources(folder: Path) -> dict[str, tuple[list[str], list[ast.ClassDef]]]:
    """What each file imports, and its public classes."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(folder.rglob("*.py"))}
    assert trees, f"{folder} holds no source"
    return {
        path.relative_to(ROOT).as_posix(): (imported_modules(tree), public_classes(tree))
        for path, tree in trees.items()
    }


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def is_framework(module: str) -> bool:
    return any(is_within(module, framework) for framework in FRAMEWORKS)


def is_behind_the_door(module: str) -> bool:
    is_door = module in {"ragaliq", "ragaliq.errors", "ragaliq.capture"}
    return is_within(module, "ragaliq") and not is_door


def offences(folder: Path, is_wrong: Callable[[str], bool]) -> dict[str, list[str]]:
    found = {path: [*filter(is_wrong, modules)] for path, (modules, _) in sources(folder).items()}
    return {path: modules for path, modules in found.items() if modules}


def test_the_library_imports_no_framework_not_even_for_annotations():
    assert offences(LIBRARY, is_framework) == {}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_imports_nothing_behind_the_public_door_and_not_the_other_adapter(adapter):
    (other,) = ADAPTERS.keys() - {adapter}
    assert offences(ADAPTERS[adapter], is_behind_the_door) == {}
    assert offences(ADAPTERS[adapter], lambda module: is_within(module, other)) == {}


def test_the_library_does_not_import_its_own_public_door():
    found = offences(LIBRARY, lambda module: module == "ragaliq")
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
    assert any(map(is_framework, imported_modules(ast.parse(source))))


def test_a_module_behind_the_door_is_told_from_the_door():
    modules = ["ragaliq.live.monitor", "ragaliq.core", "ragaliq", "ragaliq.errors", "ragaliqx"]
    assert [is_behind_the_door(module) for module in modules] == [True, True, False, False, False]


def test_no_module_takes_the_place_of_a_public_name():
    """Importing `ragaliq.x` sets the attribute `x` of the package, whatever that was before."""
    modules = {path.stem for path in LIBRARY.iterdir() if path.stem != "__init__"}
    functions = set(ragaliq.__all__) - {"telemetry"}  # which is a module by design

    assert not modules & functions


def test_no_two_classes_have_one_name():
    names = Counter(node.name for _, found in sources(LIBRARY).values() for node in found)
    assert [name for name, number in names.items() if number > 1] == []


def test_every_error_that_is_ours_is_in_the_tree_of_one_module():
    """What pytest must see as a failed assertion, and what never leaves its module, is not.

    Neither are the errors that carry a guard's result or a sink's records: they are defined there.
    """
    tree = {
        name
        for name, value in vars(ragaliq.errors).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    elsewhere = [
        node.name
        for path, (_, found) in sources(LIBRARY).items()
        for node in found
        if path not in ("ragaliq/errors.py", "ragaliq/guards.py", "ragaliq/records/record.py")
        and tree & {ast.unparse(base) for base in node.bases}
    ]
    assert elsewhere == []


def test_one_module_hooks_into_the_end_and_the_forks_of_a_process():
    def hooks(path):
        tree = ast.parse(path.read_text("utf-8"))
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        return called & {"atexit.register", "os.register_at_fork"}

    folders = (LIBRARY, *ADAPTERS.values())
    found = [path for folder in folders for path in folder.rglob("*.py") if hooks(path)]
    assert found == [LIBRARY / "core/process.py"]


def module_graph(packages):
    """Modules of the packages, each with those that it imports, anywhere and for types too."""
    modules = {}
    for package, folder in packages.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *parts)).removesuffix(".__init__")
            modules[name] = ast.parse(path.read_text("utf-8"))
    graph = {}
    for name, tree in modules.items():
        named = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                both = ((f"{node.module}.{alias.name}", node.module) for alias in node.names)
                named |= {module if module in modules else package for module, package in both}
        graph[name] = (named & modules.keys()) - {name}
    return graph


def test_no_modules_import_each_other_in_a_circle_not_even_for_types():
    graph = module_graph({"ragaliq": LIBRARY, **ADAPTERS})
    assert len(graph) > 200
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(
    "source",
    [
        "from package.a import A",
        "from package import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import package.a",
        "def f():\n    from package.a import A",
    ],
)
def test_a_circle_is_found_in_every_form(tmp_path, source):
    for name, text in {"__init__": "", "a": "from package.b import B", "b": source}.items():
        (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(CycleError):
        TopologicalSorter(module_graph({"package": tmp_path})).prepare()

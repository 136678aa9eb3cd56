"""The wheels at work in an environment of their own."""

import pytest

pytestmark = pytest.mark.slow

LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def loaded_after(installation, statement):
    return {module.split(".")[0] for module in installation.run(f"{statement}; {LOADED}")}


def test_the_three_packages_are_imported_from_the_installed_wheels(installation):
    origins = installation.run(
        "import json, ragaliq, langchain_ragaliq, llama_index.evaluation.ragaliq as adapter;"
        "modules = (ragaliq, langchain_ragaliq, adapter);"
        "print(json.dumps([module.__file__ for module in modules]))"
    )
    assert origins == [
        str(installation.site_packages / "ragaliq/__init__.py"),
        str(installation.site_packages / "langchain_ragaliq/__init__.py"),
        str(installation.site_packages / "llama_index/evaluation/ragaliq/__init__.py"),
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "import llama_index.core, llama_index.evaluation.ragaliq",
        "import llama_index.evaluation.ragaliq, llama_index.core",
    ],
)
def test_llama_index_core_and_the_adapter_share_their_namespace(statement, installation):
    origins = installation.run(
        f"import json; {statement};"
        "print(json.dumps([llama_index.__file__, llama_index.evaluation.__file__]))"
    )
    assert origins == [None, None]


def test_importing_ragaliq_loads_no_sdk_and_no_framework(installation):
    heavy = {
        "anthropic",
        "genai_prices",
        "httpx",
        "langchain_core",
        "llama_index",
        "openai",
        "rich",
    }
    assert not heavy & loaded_after(installation, "import ragaliq")


def test_an_adapter_loads_its_own_framework_only(installation):
    langchain = loaded_after(installation, "import langchain_ragaliq")
    llama_index = loaded_after(installation, "import llama_index.evaluation.ragaliq")
    assert not {"anthropic", "llama_index"} & langchain
    assert not {"anthropic", "langchain_core"} & llama_index


@pytest.mark.parametrize(
    "package", ["ragaliq", "langchain_ragaliq", "llama_index.evaluation.ragaliq"]
)
def test_every_public_name_of_an_installed_package_can_be_imported(package, installation):
    public, missing = installation.run(
        f"import json, {package} as package;"
        "missing = [name for name in package.__all__ if not hasattr(package, name)];"
        "print(json.dumps([package.__all__, missing]))"
    )
    assert public
    assert missing == []


def test_the_three_distributions_report_the_version_of_the_code(installation):
    versions = installation.run(
        "import json; from importlib.metadata import version;"
        "from ragaliq._version import __version__;"
        "names = ('ragaliq', 'langchain-ragaliq', 'llama-index-evaluation-ragaliq');"
        "print(json.dumps([__version__, *map(version, names)]))"
    )
    assert len(set(versions)) == 1

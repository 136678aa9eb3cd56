"""The wheels at work in an environment of their own."""

import pytest

pytestmark = pytest.mark.slow

ADAPTER = "llama_index.evaluation.ragaliq"
LOOK = """
import json, sys, {package} as package
loaded = [name.split(".")[0] for name in sys.modules]
missing = [name for name in package.__all__ if not hasattr(package, name)]
print(json.dumps([package.__file__, loaded, len(package.__all__), missing]))
"""
SDKS = {"anthropic", "genai_prices", "httpx", "openai", "rich"}


@pytest.mark.parametrize(
    ("package", "file", "not_loaded"),
    [
        ("ragaliq", "ragaliq", {*SDKS, "langchain_core", "llama_index"}),
        ("langchain_ragaliq", "langchain_ragaliq", {"anthropic", "llama_index"}),
        (ADAPTER, "llama_index/evaluation/ragaliq", {"anthropic", "langchain_core"}),
    ],
)
def test_an_installed_package_has_every_public_name_and_loads_no_other_sdk_or_framework(
    installation, package, file, not_loaded
):
    origin, loaded, public, missing = installation.run(LOOK.format(package=package))
    assert origin == str(installation.site_packages / file / "__init__.py")
    assert not not_loaded & set(loaded)
    assert public
    assert missing == []


@pytest.mark.parametrize(
    "packages", [f"llama_index.core, {ADAPTER}", f"{ADAPTER}, llama_index.core"]
)
def test_llama_index_core_and_the_adapter_share_their_namespace(packages, installation):
    origins = installation.run(
        f"import json, {packages};"
        "print(json.dumps([llama_index.__file__, llama_index.evaluation.__file__]))"
    )
    assert origins == [None, None]

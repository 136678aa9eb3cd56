"""What the built wheels and source archives hold, and what they ask for."""

import tarfile
import zipfile
from email.parser import HeaderParser

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

pytestmark = pytest.mark.slow

NAMES = ["ragaliq", "langchain-ragaliq", "llama-index-evaluation-ragaliq"]


def wheel_files(distribution):
    with zipfile.ZipFile(distribution.wheel) as wheel:
        return set(wheel.namelist())


def wheel_metadata(distribution):
    with zipfile.ZipFile(distribution.wheel) as wheel:
        (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(wheel.read(name).decode())


def requirements(distribution):
    parsed = map(Requirement, wheel_metadata(distribution).get_all("Requires-Dist"))
    return {requirement.name: requirement for requirement in parsed}


@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_holds_every_file_of_its_package_and_nothing_else(name, built, projects):
    project = projects[name]
    expected = {
        path.relative_to(project.folder).as_posix()
        for path in (project.folder / project.package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packaged = {path for path in wheel_files(built[name]) if ".dist-info/" not in path}
    assert f"{project.package}/py.typed" in packaged
    assert packaged == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_source_archive_holds_the_package_and_neither_tests_nor_examples(name, built, projects):
    with tarfile.open(built[name].sdist) as archive:
        files = {path.partition("/")[2] for path in archive.getnames()}
    assert f"{projects[name].package}/py.typed" in files
    assert {"LICENSE", "README.md", "pyproject.toml"} <= files
    assert not {"tests", "examples", "docs", "integrations"} & {f.split("/")[0] for f in files}


def test_the_wheel_carries_the_prompts_and_the_local_judges_data(built):
    files = wheel_files(built["ragaliq"])
    assert [f for f in files if f.startswith("ragaliq/judges/prompts/") and f.endswith(".md")]
    assert [f for f in files if f.startswith("ragaliq/judges/local/") and not f.endswith(".py")]


def test_no_wheel_puts_an_init_file_into_the_llama_index_namespaces(built):
    for distribution in built.values():
        files = wheel_files(distribution)
        assert "llama_index/__init__.py" not in files
        assert "llama_index/evaluation/__init__.py" not in files


@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_states_licence_python_version_and_description(name, built):
    metadata = wheel_metadata(built[name])
    assert metadata["License-Expression"] == "MIT"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert SpecifierSet(metadata["Requires-Python"]) == SpecifierSet(">=3.11")
    assert metadata.get_payload().startswith(f"# {name}\n")


@pytest.mark.parametrize("name", NAMES[1:])
def test_an_adapter_asks_for_ragaliq_of_the_same_major_version(name, built):
    # Another project's `ragaliq` 0.2 is on PyPI: a requirement without a floor could install it.
    assert requirements(built[name])["ragaliq"].specifier == SpecifierSet(">=1.0,<2")


def test_adapters_ask_for_the_supported_framework_ranges(built):
    langchain = requirements(built["langchain-ragaliq"])
    llama_index = requirements(built["llama-index-evaluation-ragaliq"])
    assert langchain["langchain-core"].specifier == SpecifierSet(">=1.0,<2")
    assert llama_index["llama-index-core"].specifier == SpecifierSet(">=0.14.19,<0.15")


@pytest.mark.parametrize(
    ("extra", "distribution"),
    [
        ("langchain", "langchain-ragaliq"),
        ("llama-index", "llama-index-evaluation-ragaliq"),
        ("otlp", "opentelemetry-exporter-otlp-proto-http"),
    ],
)
def test_an_extra_installs_the_distribution_it_is_named_after(extra, distribution, built):
    marker = requirements(built["ragaliq"])[distribution].marker
    assert marker.evaluate({"extra": extra})
    assert not marker.evaluate({"extra": ""})

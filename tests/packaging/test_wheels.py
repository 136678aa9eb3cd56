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
def test_a_wheel_and_an_archive_hold_a_package_whole_and_say_what_it_is(name, built, projects):
    project = projects[name]
    expected = {
        path.relative_to(project.folder).as_posix()
        for path in (project.folder / project.package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packaged = {path for path in wheel_files(built[name]) if ".dist-info/" not in path}
    assert f"{project.package}/py.typed" in packaged
    assert packaged == expected
    with tarfile.open(built[name].sdist) as archive:
        files = {path.partition("/")[2] for path in archive.getnames()}
    assert f"{project.package}/py.typed" in files
    assert {"LICENSE", "README.md", "pyproject.toml"} <= files
    assert not {"tests", "examples", "docs", "integrations"} & {f.split("/")[0] for f in files}
    metadata = wheel_metadata(built[name])
    assert metadata["License-Expression"] == "MIT"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert SpecifierSet(metadata["Requires-Python"]) == SpecifierSet(">=3.11")
    assert metadata.get_payload().startswith(f"# {name}\n")


@pytest.mark.parametrize(
    ("name", "asked", "versions"),
    [
        # Another project's `ragaliq` 0.2 is on PyPI: without a floor it could be installed.
        ("langchain-ragaliq", "ragaliq", ">=1.0,<2"),
        ("llama-index-evaluation-ragaliq", "ragaliq", ">=1.0,<2"),
        ("langchain-ragaliq", "langchain-core", ">=1.0,<2"),
        ("llama-index-evaluation-ragaliq", "llama-index-core", ">=0.14.19,<0.15"),
    ],
)
def test_an_adapter_asks_for_the_supported_versions(name, asked, versions, built):
    assert requirements(built[name])[asked].specifier == SpecifierSet(versions)


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

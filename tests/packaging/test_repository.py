"""Promises of the repository's own files: versions, pins, make targets."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"[a-z0-9-]+==[0-9][0-9A-Za-z.]*")


def pinned():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_the_three_distributions_have_the_version_of_the_code(projects):
    source = (ROOT / "ragaliq/_version.py").read_text()
    version = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE).group(1)
    versions = {name: project.table["version"] for name, project in projects.items()}
    assert versions == dict.fromkeys(projects, version)


def test_the_three_distributions_carry_the_same_licence(projects):
    assert len({(project.folder / "LICENSE").read_text() for project in projects.values()}) == 1


@pytest.mark.parametrize("folder", ["llama_index", "llama_index/evaluation"])
def test_the_llama_index_namespaces_hold_no_init_file(folder):
    namespace = ROOT / "integrations/llama-index" / folder
    assert namespace.is_dir()
    assert not list(namespace.glob("__init__.*"))


def test_constraints_are_plain_pins_without_hosts_or_paths():
    assert [line for line in pinned() if not PIN.fullmatch(line)] == []


def test_everything_the_environment_is_made_of_is_pinned(projects):
    wanted = [text for project in projects.values() for text in project.table["dependencies"]]
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    wanted += [text for group in groups.values() for text in group if isinstance(text, str)]
    pins = {line.partition("==")[0] for line in pinned()}
    names = {canonicalize_name(Requirement(text).name) for text in wanted}
    assert names - set(projects) - pins == set()


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_a_document_names_exists(document):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", (ROOT / document).read_text(), re.MULTILINE))
    assert named - targets == set()


@pytest.mark.parametrize(
    ("interpreter", "complaint"),
    [
        ('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.10.1\nexit 1\n', "3.11 or later is needed"),
        (None, "there is no"),
    ],
)
def test_make_says_what_is_wrong_with_an_interpreter_it_cannot_use(
    interpreter, complaint, projects, tmp_path
):
    sources = [project.folder / "pyproject.toml" for project in projects.values()]
    for source in (ROOT / "Makefile", ROOT / "constraints.txt", *sources):
        copy = tmp_path / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    python = tmp_path / "some-python"
    if interpreter is not None:
        python.write_text(interpreter)
        python.chmod(0o755)
    done = subprocess.run(
        ["make", "test", f"PYTHON={python}"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert complaint in done.stderr
    assert not (tmp_path / ".venv").exists()

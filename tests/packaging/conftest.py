"""The three distributions, built once and installed where the working tree is out of reach."""

import json
import subprocess
import sys
import sysconfig
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Project:
    """A distribution as the repository holds it."""

    folder: Path
    package: str  # the folder of sources, relative to `folder`

    @property
    def table(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]


PROJECTS = {
    "ragaliq": Project(ROOT, "ragaliq"),
    "langchain-ragaliq": Project(ROOT / "integrations/langchain", "langchain_ragaliq"),
    "llama-index-evaluation-ragaliq": Project(
        ROOT / "integrations/llama-index", "llama_index/evaluation/ragaliq"
    ),
}


@dataclass(frozen=True)
class Built:
    wheel: Path
    sdist: Path


@dataclass(frozen=True)
class Installation:
    """A virtual environment with the wheels in it and their dependencies in reach."""

    python: Path
    site_packages: Path

    def run(self, code: str) -> Any:
        """Run `code` in a fresh interpreter, isolated from the tree; it prints JSON."""
        done = subprocess.run(
            [self.python, "-I", "-W", "error", "-c", code],
            cwd=self.site_packages,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def projects() -> dict[str, Project]:
    return PROJECTS


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> dict[str, Built]:
    """Each project's source archive, and the wheel that was built from that archive."""
    out = tmp_path_factory.mktemp("dist")
    running = {
        name: subprocess.Popen(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", out / name, "."],
            cwd=project.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, project in PROJECTS.items()
    }
    output = {name: process.communicate(timeout=100)[0] for name, process in running.items()}
    for name, process in running.items():
        assert process.returncode == 0, output[name]
    return {
        name: Built(
            wheel=next((out / name).glob("*.whl")), sdist=next((out / name).glob("*.tar.gz"))
        )
        for name in PROJECTS
    }


@pytest.fixture(scope="session")
def installation(built, tmp_path_factory) -> Installation:
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)}, scheme="venv")
    python = Path(paths["scripts"]) / Path(sys.executable).name
    site_packages = Path(paths["purelib"])
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", python),
            *("install", "--quiet", "--no-deps", "--no-index", "--no-input"),
            *(distribution.wheel for distribution in built.values()),
        ],
        check=True,
        timeout=60,
    )
    # Dependencies come from the environment the tests run in; the editable installs there do not
    # come along, because `.pth` files count in an environment's own folder only.
    here = sysconfig.get_paths()
    folders = dict.fromkeys([here["purelib"], here["platlib"]])
    (site_packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in folders))
    return Installation(python=python, site_packages=site_packages)

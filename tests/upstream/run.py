"""Run LangChain's and LangGraph's own tests twice, the second time with a handler attached.

    python run.py FOLDER [PACKAGE ...]

The tests come in the packages' source distributions, of the versions that are installed. Prints
how many tests failed each time, and ends with 1 where one failed only with the handler. Needs the
package registry, and minutes.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path

NO_NETWORK = ["--disable-socket", "--allow-unix-socket"]  # as their own Makefiles say
TESTS = {
    "langchain": ["tests/unit_tests", *NO_NETWORK],
    "langgraph": ["tests"],
}


def source(package: str, folder: Path) -> Path:
    version = importlib.metadata.version(package)
    place = folder / f"{package.replace('-', '_')}-{version}"
    if not place.exists():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        only = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", str(folder)]
        subprocess.run([*pip, *only, f"{package}=={version}"], check=True)
        with tarfile.open(f"{place}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return place


def failures(place: Path, *options: str) -> tuple[int, set[str]]:
    """Number of tests that ran, and names of those that failed."""
    report, attached = place / "report.xml", place / "attached.json"
    for file in (report, attached):
        file.unlink(missing_ok=True)
    here = str(Path(__file__).parent)
    environment = os.environ | {
        "NO_DOCKER": "true",
        "PYTHONPATH": here,
        "RAGALIQ_ATTACHED": str(attached),
    }
    quiet = ["-q", "-p", "no:benchmark", "--timeout=120", f"--junitxml={report}"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, *quiet],
        cwd=place,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    cases = list(ET.parse(report).getroot().iter("testcase"))
    failed = {
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }
    if attached.exists():
        print("   ", json.loads(attached.read_text()), flush=True)
    return len(cases), failed


def main(folder: str, *packages: str) -> int:
    caused: set[str] = set()
    for package in packages or TESTS:
        place = source(package, Path(folder).resolve())
        total, before = failures(place, *TESTS[package])
        print(f"{place.name}: {len(before)} of {total} fail without a handler", flush=True)
        total, after = failures(place, *TESTS[package], "-p", "attached")
        print(f"{place.name}: {len(after)} of {total} fail with one", flush=True)
        caused |= after - before
        for test in sorted(after - before):
            print(f"    only with the handler: {test}")
    return bool(caused)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

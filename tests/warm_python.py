"""Runs scripts as `python SCRIPT` does, without importing third-party libraries for each of them.

A program for the fixture `warm_python`. It imports the libraries once and forks for each request:
a line of JSON on standard input, answered with a line that holds the exit status. Nothing of
ragaliq is imported before the fork, so that each script still finds it as a fresh process does.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType

LIBRARIES = """
anthropic genai_prices httpx2 langchain.agents langchain_core.vectorstores llama_index.core openai
opentelemetry.exporter.otlp.proto.http._log_exporter
opentelemetry.exporter.otlp.proto.http.metric_exporter
opentelemetry.exporter.otlp.proto.http.trace_exporter
opentelemetry.sdk._logs opentelemetry.sdk.metrics opentelemetry.sdk.trace
rapidfuzz rich.console sentencex Stemmer
""".split()


def main() -> None:
    for name in LIBRARIES:
        with suppress(ImportError):  # not everything is installed wherever the tests run
            importlib.import_module(name)
    assert not [name for name in sys.modules if "ragaliq" in name]
    gc.freeze()
    answers = os.dup(sys.stdout.fileno())  # not inherited by the programs a script starts
    while line := sys.stdin.readline():
        process = os.fork()
        if not process:
            os.close(answers)
            run(**json.loads(line))
            return  # what is registered for the exit runs now
        _, status = os.waitpid(process, 0)
        os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))


def run(script: str, arguments: list[str], folder: str, output: list[str], environment: dict):
    for descriptor, path in enumerate([os.devnull, *output]):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    own = str(Path(__file__).parent)
    rest = [path for path in sys.path if path not in (own, *inherited)]
    sys.path[:] = [str(Path(script).parent), *filter(None, inherited), *rest]
    sys.argv = [script, *arguments]
    sys.modules.pop("sitecustomize", None)
    with suppress(ImportError):
        importlib.import_module("sitecustomize")
    module = ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    code = compile(Path(script).read_bytes(), script, "exec")
    exec(code, module.__dict__)


if __name__ == "__main__":
    main()

"""Run every application here, and print the list of docs/pages/traces.md.

    python run.py FOLDER [NAME ...]

Each is installed into an environment of its own in FOLDER, once, and asked twice by `record.py`.
Needs the package registries, and minutes.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from applications import APPLICATIONS
from scripted_models import ANSWER, QUESTION, TEXTS, body_of, scripted_models

from ragaliq import DatasetError
from ragaliq.traces import TraceReader

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SECONDS = 180
OTEL = ("@opentelemetry/api", "@opentelemetry/sdk-trace-node", "zod")
OTLP = "@opentelemetry/exporter-trace-otlp-http"
NODE = {
    "vercel": ("AI SDK (Node)", "its own", ("ai", "@ai-sdk/openai-compatible", "@ai-sdk/otel")),
    "genkit": ("Genkit (Node)", "its own", ("genkit",)),
    "voltagent": (
        "VoltAgent (Node)",
        "its own",
        ("@voltagent/core", "ai", "@ai-sdk/openai-compatible"),
    ),
    "langchain": (
        "LangChain.js (Node)",
        "OpenInference",
        (
            *("langchain", "@langchain/openai", "@langchain/core"),
            "@arizeai/openinference-instrumentation-langchain",
        ),
    ),
}


def installed(folder, packages):
    """The Python of an environment with these packages and ragaliq."""
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        uv = shutil.which("uv")
        make = [uv, "venv", "-q"] if uv else [sys.executable, "-m", "venv"]
        subprocess.run([*make, folder], check=True)
        pip = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
        subprocess.run([*pip, "-q", *packages, "-e", f"{ROOT}[otlp]"], check=True)
        (folder / ".ready").touch()
    return python


def asked(name, folder):
    app = APPLICATIONS[name]
    python = installed(folder / name, app.packages)
    command = [python, HERE / "record.py", name, folder]
    subprocess.run(command, check=True, timeout=SECONDS, capture_output=True, cwd=HERE)
    return json.loads((folder / f"{name}.json").read_text())


@contextmanager
def collector(path):
    """An OTLP receiver whose requests end up in a file, one a line."""

    class Collector(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            line = json.dumps(body_of(self))
            with path.open("a") as file:
                file.write(line + "\n")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    path.unlink(missing_ok=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/traces"
        server.shutdown()


def asked_in_node(name, folder):
    packages = (*NODE[name][2], *OTEL, OTLP)
    home, path = folder / f"node-{name}", folder / f"node-{name}.jsonl"
    if not (home / ".ready").exists():
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "init", "-y"], check=True, cwd=home, capture_output=True)
        subprocess.run(["npm", "install", "--silent", *packages], check=True, cwd=home)
        (home / ".ready").touch()
    for script in (HERE / "node").glob("*.mjs"):
        shutil.copy(script, home)
    with scripted_models() as url, collector(path) as otlp:
        given = {"MODEL_URL": url, "OTLP_URL": otlp, "QUESTION": QUESTION}
        env = os.environ | given | {"TEXTS": json.dumps(TEXTS)}
        command = ["node", f"{name}.mjs"]
        subprocess.run(command, check=True, timeout=SECONDS, capture_output=True, cwd=home, env=env)
    reader = TraceReader(path)
    try:
        found = [[c.query, c.context_texts, c.response, c.sources.context] for c in reader]
    except DatasetError:
        found = []
    versions = []
    for package in NODE[name][2]:
        manifest = json.loads((home / "node_modules" / package / "package.json").read_text())
        versions.append(f"{package} {manifest['version']}")
    return {"versions": versions, "file": found, "file_reasons": dict(reader.skipped_runs)}


def outcome(cases, reasons):
    """`right`, or what it is instead."""
    right = [
        case
        for case in cases
        if (case[0], case[2].strip()) == (QUESTION, ANSWER)
        and any(TEXTS[0] in text for text in case[1])
        and not any(ANSWER in text for text in case[1])
    ]
    if len(right) == len(cases) == 2:
        return "right"
    if cases:
        return f"**wrong**: {len(right)} of {len(cases)} right"
    return ", ".join(f"`{reason}`" for reason in reasons) or "nothing recognised"


def of_both(versions):
    """The versions of the framework, which comes first, and of its instrumentation."""
    first, *others = versions
    chosen = [first, *(each for each in others if "instrumentation" in each)]
    return ", ".join(each.rpartition(" ")[2] for each in chosen)


def rows(folder, names):
    """Framework, instrumentation, versions and what became of it; empty where it did not run."""
    known = (*APPLICATIONS, *NODE)
    if unknown := set(names) - set(known):
        sys.exit(f"no such application: {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [name for name in known if not names or name in names]
    for name in chosen:
        is_python = name in APPLICATIONS
        framework, instrumentation = (APPLICATIONS if is_python else NODE)[name][:2]
        try:
            row = asked(name, folder) if is_python else asked_in_node(name, folder)
        except (subprocess.SubprocessError, OSError) as error:
            said = getattr(error, "stderr", None) or b""
            sys.stderr.write(f"{name}: {error}\n{said.decode()[-2000:]}\n")
            yield framework, instrumentation, "", "did not run"
            continue
        read = outcome(row["file"], row["file_reasons"])
        if not is_python:
            read += " (file)"
        elif (live := outcome(row["live"], row["live_reasons"])) != read:
            read = f"live {live}, from the file {read}"
        yield framework, instrumentation, of_both(row["versions"]), read


def main(folder, *names):
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for framework, instrumentation, versions, read in rows(folder, names):
        note = "" if read == "right" else f" {read}"
        found.setdefault(instrumentation, []).append(f"{framework} {versions}{note}")
    lines = [f"- **{name}**: {'; '.join(read)}.\n" for name, read in found.items()]
    sys.stdout.write("".join(lines))
    return int(any("wrong" in line or "not run" in line for line in lines))


sys.exit(main(*sys.argv[1:]))

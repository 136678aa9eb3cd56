"""The compose file's services as processes of this machine, by their own command lines."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error

import httpx
from deploy_files import ROOT, services

from free_ports import free_port

_OURS = ("ANTHROPIC_", "OTEL_", "RAGALIQ_", "SERVICE_", "UVICORN_")


class Stack:
    """Starts services by name; what a container would find under a name is put in its place.

    Args:
        folder: In place of the volumes, and for the logs.
        collector_port: Where OTLP is received.
    """

    def __init__(self, folder, collector_port):
        self.folder = folder
        self.broker, self.application = free_port(), free_port()
        self.store = folder / "evaluations.db"
        self._services = services()
        self._running = {}
        self._places = {
            "@redis:6379": f"@127.0.0.1:{self.broker}",
            "//collector:4318": f"//127.0.0.1:{collector_port}",
            "sqlite:////data/": f"sqlite:///{folder}/",
            "127.0.0.1:8000": f"127.0.0.1:{self.application}",
            "redis-cli": f"redis-cli -p {self.broker}",
        }

    def start(self, name, *more, environment=None):
        """Start a service with its own command and environment, and what is given besides."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*self._command(self._services[name]["command"]), *more],
                cwd=self.folder,
                env=self._environment(name) | (environment or {}),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def pid(self, name):
        return self._running[name].pid

    def is_healthy(self, name):
        """What the service's own health check says, run once."""
        kind, *test = self._services[name]["healthcheck"]["test"]
        command = self._command(test) if kind == "CMD" else ["sh", "-c", self._placed(test[0])]
        checked = subprocess.run(
            command, env=self._environment(name), capture_output=True, check=False
        )
        return checked.returncode == 0

    def stop(self, name):
        """Send the service's stop signal and give it the time it has; returns its exit code."""
        service, process = self._services[name], self._running[name]
        process.send_signal(getattr(signal, service.get("stop_signal", "SIGTERM")))
        return process.wait(float(service["stop_grace_period"].removesuffix("s")))

    def ask(self, question):
        url = f"http://127.0.0.1:{self.application}/ask"
        return httpx.get(url, params={"question": question}, timeout=30.0).text

    def stats(self):
        return httpx.get(f"http://127.0.0.1:{self.application}/stats", timeout=30.0).json()

    def logs(self):
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def end(self):
        for process in self._running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _command(self, command):
        program, *arguments = [self._placed(each) for each in command]
        if program == "uvicorn":
            port = arguments.index("--port") + 1
            arguments[port] = str(self.application)
        programs = {
            "uvicorn": [sys.executable, "-m", "uvicorn"],
            "ragaliq": [sys.executable, "-m", "ragaliq.cli"],
            "python": [sys.executable],
            "redis-server": ["redis-server", "--port", str(self.broker), "--bind", "127.0.0.1"],
        }
        return [*programs[program], *arguments]

    def _placed(self, text):
        for name, place in self._places.items():
            text = text.replace(name, place)
        text = re.sub(r"^/service$", str(ROOT / "examples/fastapi_service"), text)
        return text.replace("0.0.0.0", "127.0.0.1")

    def _environment(self, name):
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        own = {k: self._placed(v) for k, v in self._services[name]["environment"].items()}
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(self.folder)}
        return inherited | paths | own


def becomes(is_so, *, within=30.0):
    """Whether something becomes so in time."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            if is_so():
                return True
        except (httpx.TransportError, urllib.error.URLError):
            pass
        time.sleep(0.1)
    return False

"""Real Redis, NATS and RabbitMQ servers on loopback, for one test at a time."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from free_ports import free_port

PROGRAMS = {
    "redis": shutil.which("redis-server"),
    "nats": shutil.which("nats-server"),
    "rabbitmq": shutil.which("rabbitmq-server"),
}
_READY_WITHIN = 60.0


class _Server:
    """A server on a free port that can be killed and started again on the same data.

    Args:
        folder: Where it keeps its data and its log.
    """

    hello = answer = b""

    def __init__(self, folder: Path) -> None:
        self.port, self._folder = free_port(), folder
        self._environment: dict[str, str] | None = None
        self._prepare()
        self.start()

    def _prepare(self) -> None:
        """Write what it reads at its start."""

    def _command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> None:
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                env=self._environment,
                cwd=self._folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _wait_for(self.port, self.hello, self.answer, self._folder)

    def kill(self) -> None:
        """End it as a crash would; `start` brings it back with what it had confirmed."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    close = kill


class RedisServer(_Server):
    """Can be frozen as well.

    Args:
        folder: See above.
        *options: Further options of redis-server.
        answer: What it says to a PING once it is ready.
    """

    # Until its data are loaded it answers -LOADING.
    hello = b"PING\r\n"

    def __init__(self, folder: Path, *options: str, answer: bytes = b"+PONG") -> None:
        self._options, self.answer = options, answer
        super().__init__(folder)

    def url(self, database: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{database}"

    def _command(self) -> list[str]:
        return [
            *[str(PROGRAMS["redis"]), "--port", str(self.port), "--bind", "127.0.0.1"],
            *["--dir", str(self._folder), "--save", "", "--appendonly", "yes"],
            # What a killed process had written is the system's to keep; only a machine that fails
            # would lose it.
            *["--appendfsync", "no", *self._options],
        ]

    def freeze(self) -> None:
        """Keep its connections open and answer nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)


class NatsServer(_Server):
    """With JetStream."""

    answer = b"INFO"

    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def _prepare(self) -> None:
        (self._folder / "nats.conf").write_text(
            f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{self._folder}/data" }}\n'
        )

    def _command(self) -> list[str]:
        return [str(PROGRAMS["nats"]), "-c", str(self._folder / "nats.conf")]


class RabbitServer(_Server):
    """A node with a port mapper of its own."""

    hello, answer = b"AMQP\x00\x00\x09\x01", b"\x01"

    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def _command(self) -> list[str]:
        return ["/usr/lib/rabbitmq/bin/rabbitmq-server"]

    def _prepare(self) -> None:
        folder = self._folder
        (folder / "plugins").write_text("[].")
        (folder / "rabbit.conf").write_text("disk_free_limit.absolute = 1MB\n")
        mapper = str(free_port())
        self._environment = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": f"tests{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbit"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1"
            ),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": mapper,
        }
        self._mapper = subprocess.Popen(
            ["epmd", "-address", "127.0.0.1", "-port", mapper], env=self._environment
        )

    def close(self) -> None:
        self.kill()
        self._mapper.kill()
        self._mapper.wait()


def _wait_for(port: int, question: bytes, answer: bytes, folder: Path) -> None:
    deadline = time.monotonic() + _READY_WITHIN
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), 2.0) as line:
                line.sendall(question)
                if line.recv(64).startswith(answer):
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"the server did not start; see the logs in {folder}")

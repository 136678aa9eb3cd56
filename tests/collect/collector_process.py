"""`ragaliq collect` as a process of its own."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager


@contextmanager
def collector(*options, port):
    command = [sys.executable, "-m", "ragaliq.cli", "collect", "--listen", f"127.0.0.1:{port}"]
    environment = os.environ | {"RAGALIQ_JUDGE": "local", "OTEL_BSP_SCHEDULE_DELAY": "200"}
    process = subprocess.Popen(
        [*command, *map(str, options)], env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_until(lambda: process.poll() is not None or asked(port, "/healthz") == 200)
        assert process.poll() is None, process.stderr.read()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def wait_until(condition, timeout=60.0):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.1)


def asked(port, path="/v1/traces", body=None):
    """The status of an answer; 0 where there is none."""
    headers = {"content-type": "application/x-protobuf"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def counts(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return answer.read().decode()

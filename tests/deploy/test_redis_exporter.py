"""A real redis_exporter, set up as in the compose file, tells what the dashboard asks for."""

import os
import subprocess
import sys
import urllib.request

import pytest
import redis
from broker_servers import PROGRAMS, RedisServer
from deploy_files import ROOT, services
from exposition import BROKER_KEYS
from stack import becomes

from free_ports import free_port

sys.path.insert(0, str(ROOT / "tests/backends"))

from servers import installed

pytestmark = pytest.mark.backends


@pytest.fixture
def broker(tmp_path):
    if PROGRAMS["redis"] is None:
        pytest.skip("redis-server is missing; `make brokers` installs Debian's package (as root)")
    server = RedisServer(tmp_path)
    with redis.Redis(port=server.port) as client:
        client.config_set("requirepass", "5ecret")
    yield server
    server.kill()


@pytest.fixture
def exporter(broker):
    address = f"127.0.0.1:{free_port()}"
    settings = services()["redis-exporter"]["environment"]
    settings |= {"REDIS_ADDR": f"redis://127.0.0.1:{broker.port}"}
    program = installed("prometheus-redis-exporter", "usr", "bin", "prometheus-redis-exporter")
    process = subprocess.Popen(
        [program, "-web.listen-address", address],
        env=os.environ | settings,
        stderr=subprocess.DEVNULL,
    )
    yield f"http://{address}/metrics"
    process.kill()
    process.wait()


def test_the_length_of_each_key_is_told_also_where_there_is_none(broker, exporter):
    with redis.Redis(port=broker.port, password="5ecret") as client:
        for job in "abc":
            client.xadd("ragaliq", {"job": job})
    told = {}

    def ask():
        with urllib.request.urlopen(exporter, timeout=5) as reply:
            lines = reply.read().decode().splitlines()
        told.update(line.rsplit(" ", 1) for line in lines if line.startswith("redis_key_size{"))
        return told

    assert becomes(ask)
    assert told == {
        f'redis_key_size{{db="db0",key="{key}"}}': "3" if key == "ragaliq" else "0"
        for key in BROKER_KEYS
    }

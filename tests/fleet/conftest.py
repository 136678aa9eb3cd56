"""A real Redis server for every test that asks for one."""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from redis_server import PROGRAM, RedisServer  # noqa: E402 - found through the path above


@pytest.fixture
def redis_server(tmp_path):
    if PROGRAM is None:
        # In CI a test that did not run must not look like one that passed.
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse("redis-server is missing; `make redis` installs Debian's package (as root)")
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    yield server
    server.thaw()
    server.kill()

"""It is known which processes are still there, however they ended."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys

import pytest

from ragaliq.storage.owners import Owner, try_lock

HOLD = """
import sys, time
from pathlib import Path
from ragaliq.storage.owners import Owner
owner = Owner(Path(sys.argv[1]))
print(owner.name, flush=True)
time.sleep(600)
"""

FORK = """
import os, sys
from pathlib import Path
from ragaliq.storage.owners import Owner, try_lock

store = Path(sys.argv[1])
parent, lock = Owner(store), try_lock(store.with_name("lock"))
name = parent.name
begin, tell, to_end, end = *os.pipe(), *os.pipe()
child = os.fork()
if child == 0:
    os.write(tell, parent.name.encode())
    os.read(to_end, 1)
    os._exit(0)
childs = os.read(begin, 100).decode()
assert childs != name
assert Owner(store).gone([name, childs]) == []
parent.close()
lock.release()
# The child is still there, and holds its own lock only.
assert Owner(store).gone([name, childs]) == [name]
assert try_lock(store.with_name("lock")) is not None
os.write(end, b"x")
os.waitpid(child, 0)
assert Owner(store).gone([childs]) == [childs]
"""


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.db"


def test_an_owner_is_there_until_it_is_closed(store):
    first, second = Owner(store), Owner(store)
    name = first.name
    assert first.name == name != second.name
    assert second.gone([name, second.name]) == []
    first.close()
    assert second.gone([name]) == [name]
    assert first.name != name


def test_an_owner_nobody_refers_to_is_gone(store):
    name = Owner(store).name
    gc.collect()

    assert Owner(store).gone([name]) == [name]


def test_one_that_was_never_there_is_gone(store):
    assert Owner(store).gone(["nobody"]) == ["nobody"]


def test_a_killed_process_is_gone_at_once(store):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store)], stdout=subprocess.PIPE, text=True
    )
    name = process.stdout.readline().strip()
    here = Owner(store)
    assert here.gone([name]) == []
    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert here.gone([name]) == [name]
    assert not (store.with_name("store.db.locks") / name).exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_another_owner_and_does_not_keep_its_parents_locks(store):
    # In a process of its own: this one has threads, in which a fork is not safe.
    subprocess.run([sys.executable, "-c", FORK, str(store)], check=True, timeout=60)


def test_only_one_holds_a_lock(tmp_path):
    held = try_lock(tmp_path / "folder" / "lock")
    assert try_lock(tmp_path / "folder" / "lock") is None
    held.release()
    again = try_lock(tmp_path / "folder" / "lock")
    assert again is not None
    assert again.is_held

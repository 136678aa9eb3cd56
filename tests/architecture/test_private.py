"""Canaries: each private interface of another library that ragaliq uses is still there."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from ragaliq import _private


def test_the_module_behind_os_has_getcwd():
    assert callable(import_module(os.name).getcwd)
    assert _private.working_folder() == str(Path.cwd())

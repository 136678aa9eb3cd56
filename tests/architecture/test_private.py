"""Canaries: each private interface of another library that ragaliq uses is still there."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from opentelemetry import context

from ragaliq import _private


def test_the_module_behind_os_has_getcwd():
    assert callable(import_module(os.name).getcwd)
    assert _private.working_folder() == str(Path.cwd())


def test_instrumentations_know_the_key_by_which_they_are_suppressed():
    from opentelemetry.instrumentation.utils import suppress_instrumentation

    with suppress_instrumentation():
        assert context.get_value(_private.suppress_instrumentation_key()) is True

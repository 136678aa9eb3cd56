"""Canaries: each private interface of another library that ragaliq uses is still there."""

from __future__ import annotations

import asyncio
import os
import threading
from importlib import import_module
from pathlib import Path

import pytest
from opentelemetry import context, metrics, trace
from opentelemetry._logs import NoOpLoggerProvider
from opentelemetry._logs._internal import ProxyLoggerProvider
from opentelemetry.metrics._internal import _ProxyMeterProvider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from ragaliq import _private


def test_the_module_behind_os_has_getcwd():
    assert callable(import_module(os.name).getcwd)
    assert _private.working_folder() == str(Path.cwd())


def test_instrumentations_know_the_key_by_which_they_are_suppressed():
    from opentelemetry.instrumentation.utils import suppress_instrumentation

    with suppress_instrumentation():
        assert context.get_value(_private.suppress_instrumentation_key()) is True


async def test_asyncio_says_whether_a_loop_runs_without_raising(monkeypatch):
    assert callable(asyncio._get_running_loop)
    assert _private.is_loop_running()
    monkeypatch.delattr(asyncio, "_get_running_loop")
    assert _private.is_loop_running()


def test_where_no_loop_runs_it_says_so(monkeypatch):
    assert not _private.is_loop_running()
    monkeypatch.delattr(asyncio, "_get_running_loop")
    assert not _private.is_loop_running()


def test_threading_has_a_hook_before_its_executors_end(monkeypatch):
    assert callable(threading._register_atexit)
    monkeypatch.delattr(threading, "_register_atexit")
    assert not _private.register_before_threads_end(print)


def test_gevent_and_eventlet_say_what_they_patched():
    gevent = pytest.importorskip("gevent.monkey")
    assert not gevent.is_module_patched("threading")
    assert _private.patched_by() is None


def test_eventlet_says_what_it_patched():
    eventlet = pytest.importorskip("eventlet.patcher")
    assert not eventlet.is_monkey_patched("thread")


def test_providers_of_the_api_itself_are_told_from_ones_that_export():
    unset = (trace.ProxyTracerProvider(), _ProxyMeterProvider(), ProxyLoggerProvider())
    discarding = (trace.NoOpTracerProvider(), metrics.NoOpMeterProvider(), NoOpLoggerProvider())
    for provider in unset:
        assert _private.is_unset(provider)
        assert _private.is_stand_in(provider)
    for provider in discarding:
        assert not _private.is_unset(provider)
        assert _private.is_stand_in(provider)
    for provider in (TracerProvider(), MeterProvider(), LoggerProvider()):
        assert not _private.is_unset(provider)
        assert not _private.is_stand_in(provider)

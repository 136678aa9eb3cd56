"""The command line as a user runs it."""

import json

import pytest

import products_receivers
from command_line import ragaliq

__all__ = ["ragaliq"]


@pytest.fixture
def write_cases(tmp_path):
    """Writes cases to a JSONL file: each a dictionary, named after its position."""

    def write(*cases, name="cases.jsonl"):
        path = tmp_path / name
        rows = [{"id": f"case-{number}"} | case for number, case in enumerate(cases)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


@pytest.fixture
def records(tmp_path):
    """Reads a results file, without its first line."""

    def read(name="results.jsonl"):
        lines = (tmp_path / name).read_text().splitlines()[1:]
        return [json.loads(line) for line in lines]

    return read


@pytest.fixture
def press(monkeypatch):
    """The keys that are pressed; after the last, the terminal is closed."""

    def press(keys):
        waiting = iter(keys)

        def getchar():
            key = next(waiting, None)
            if key is None:
                raise EOFError
            return key

        monkeypatch.setattr("typer.getchar", getchar)

    return press


@pytest.fixture
def receiver_of():
    """Starts loopback servers of the products that sinks write to, and stops them at the end."""
    started = []

    def start(name):
        started.append(getattr(products_receivers, f"{name.capitalize()}Receiver")())
        return started[-1]

    yield start
    for receiver in started:
        receiver.stop()

"""The small examples, run as users run them: as scripts, and showing what they promise."""

import ast
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings

FOLDER = Path(__file__).parents[2] / "examples" / "recipes"

SHOWN = {
    "cascade_judge.py": ["NOT_ENOUGH_INFO by scripted - They come in cash."],
    "custom_evaluator.py": ["no_claims None None - No citations.", "mean of 2 is 0.5"],
    "custom_judge.py": ["{'faithfulness': {'scored': 1}}"],
    "guard.py": [
        "chain: I do not know.",
        "check: rejected ['Shipping costs 90 dollars.']",
    ],
    "langchain_agent.py": ["SUPPORTED - The Aurora lamp weighs 310 grams.", "{'evaluated': 1}"],
    "langchain_lcel.py": ["NOT_ENOUGH_INFO - We pay in cash.", "{'evaluated': 1}"],
    "llama_index_query_engine.py": ["faithfulness: scored", "{'evaluated': 1}"],
    "offline_csv.py": [
        "  NOT_ENOUGH_INFO: They come in cash.",
        "parking: answer_refused, score None",
    ],
}
ELSEWHERE = {
    "export_to_collector.py",
    "notebook.ipynb",
    "test_answers.py",
    "answers.csv",
    "README.md",
}


def test_every_example_is_run_and_listed():
    files = {path.name for path in FOLDER.iterdir() if path.is_file()}
    assert files == {*SHOWN, *ELSEWHERE}
    listed = (FOLDER / "README.md").read_text()
    assert {name for name in files - {"README.md"} if f"]({name})" not in listed} == set()


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_an_example_begins_with_what_it_shows(script):
    assert ast.get_docstring(ast.parse(script.read_text()))


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_an_example_shows_what_it_promises(run_demo, name):
    done = run_demo(FOLDER / name)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in SHOWN[name] if line not in lines] == []


def test_the_notebook_holds_no_outputs_and_its_cells_run(run_demo, tmp_path):
    cells = json.loads((FOLDER / "notebook.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["outputs"] or cell["execution_count"] for cell in code] == [None] * len(code)
    # As in a notebook, an event loop is running while the cells are.
    body = "\n".join("".join(cell["source"]) for cell in code)
    script = tmp_path / "cells.py"
    script.write_text(
        "import asyncio\nasync def main(source):\n    exec(source, {})\n"
        f"asyncio.run(main({body!r}))\n"
    )
    done = run_demo(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ""
    assert "Shop answers" in (tmp_path / "answers.html").read_text()


def test_the_tests_in_the_folder_pass(run_demo, tmp_path):
    script = tmp_path / "run_pytest.py"
    script.write_text("import sys, pytest\nsys.exit(pytest.main(sys.argv[1:]))\n")
    options = ["-p", "ragaliq.pytest_plugin", "-p", "no:cacheprovider", "-c", "/dev/null"]
    done = run_demo(
        script,
        arguments=[*options, str(FOLDER / "test_answers.py")],
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",  # the others take longer than all of this
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


async def test_verdicts_reach_a_collector(run_demo, unused_tcp_port):
    settings = OtelTapHttpProtobufReceiverSettings(http_port=unused_tcp_port)
    async with OtelTapHttpProtobufReceiver(settings) as receiver:
        endpoint = f"http://127.0.0.1:{unused_tcp_port}"
        script = FOLDER / "export_to_collector.py"
        done = run_demo(script, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        assert (done.returncode, done.stdout, done.stderr) == (0, "sent\n", "")
        # Together: the receiver keeps nothing for those who come later.
        await asyncio.gather(
            receiver.await_trace(lambda span: span.name == "answer a question", timeout=10),
            receiver.await_trace(lambda span: span.name.startswith("claim "), timeout=10),
            receiver.await_log(
                lambda record: record.event_name == "gen_ai.evaluation.result", timeout=10
            ),
        )


def test_the_recipe_for_tests_runs_where_it_lies_without_the_tools_of_this_repository():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:asyncio",
            "-p",
            "no:xdist",
            "test_answers.py",
        ],
        cwd=FOLDER,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout

"""The commands, and the exit codes of their errors."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from ragaliq._version import __version__
from ragaliq.cli.annexes import Commands
from ragaliq.cli.cases import cases
from ragaliq.cli.compare import CompareCommand, compare
from ragaliq.cli.console import Command, ExitCode, code_of, errors, output
from ragaliq.cli.demo import demo
from ragaliq.cli.doctor import doctor
from ragaliq.cli.estimate import estimate, metrics
from ragaliq.cli.evaluate import evaluate
from ragaliq.cli.report import report
from ragaliq.errors import RagaliqError

app = typer.Typer(
    name="ragaliq",
    cls=Commands,
    help="Score RAG answers claim by claim.",
    no_args_is_help=True,
    # All commands inherit these.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 200},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (evaluate, estimate, compare, report, cases, metrics, doctor, demo):
    app.command(cls=CompareCommand if command is compare else Command)(command)


@app.callback(invoke_without_command=True)
def _main(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Score RAG answers claim by claim."""
    if version:
        output.print(__version__)
        raise typer.Exit


def run() -> int:
    """Run the command in `sys.argv`; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # pipes on Windows, and terminals, lack letters
    try:
        result = app(prog_name="ragaliq", standalone_mode=False)
    except RagaliqError as error:
        errors.print(f"ragaliq: {error}")
        return code_of(error)
    except BrokenPipeError:
        # The reader of the pipe has gone (`| head`): there is no one to report to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except OSError as error:
        # The system's errors about a path: too long a name, a folder without access.
        if error.filename is None:
            raise
        errors.print(f"ragaliq: {error.filename}: {error.strerror}")
        return ExitCode.DATA
    except Exception as error:
        if not hasattr(error, "exit_code"):
            raise
        if hasattr(error, "show"):  # a wrong option; asking for an exit shows nothing
            wrong: Any = error
            wrong.message = str(wrong.message).removeprefix("Value error, ")  # pydantic's
            wrong.show()
        return int(error.exit_code)
    code = int(result or 0)
    if code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
        errors.print("ragaliq: interrupted")
    return code

"""The command line `ragaliq`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; exit with one of the codes in `exit_codes`."""
    try:
        from ragaliq.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(
            f"ragaliq: the command line needs {error.name}, which is not installed: "
            "pip install 'ragaliq[cli]'"
        )
    except KeyboardInterrupt:  # loading takes half a second
        sys.stderr.write("ragaliq: interrupted\n")
        sys.exit(130)
    sys.exit(run())

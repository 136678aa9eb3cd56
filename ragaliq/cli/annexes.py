"""Commands of annexes: found by entry points, and listed even if their extra is missing."""

from __future__ import annotations

import re
from importlib.metadata import (
    EntryPoint,
    PackageNotFoundError,
    distribution,
    entry_points,
    version,
)
from typing import Any

import typer
from typer.core import TyperGroup

from ragaliq.cli.console import Command
from ragaliq.errors import ConfigurationError

_GROUP = "ragaliq.commands"


class Commands(TyperGroup):
    """Commands of the main house, then those that annexes register as `ragaliq.commands`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names."""
        own = super().list_commands(ctx)
        return [*own, *sorted(entry_points(group=_GROUP).names - set(own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Command with this name, imported from its annex; None if there is none."""
        own = super().get_command(ctx, cmd_name)
        found = () if own is not None else entry_points(group=_GROUP, name=cmd_name)
        return next((_command(point) for point in found), own)


def _command(point: EntryPoint) -> Any:
    """Command of an entry point; if its extra is missing, one that says what to install."""
    missing = next((extra for extra in point.extras if not _is_installed(extra)), None)
    found = None
    try:
        found = _as_command(point.name, point.load())
    except ModuleNotFoundError as error:  # of an annex that imports at once what its extra brings
        missing = missing or next(iter(point.extras), error.name)
    if missing is None:
        return found
    install = f"pip install 'ragaliq[{missing}]'"

    def refuse() -> None:
        raise ConfigurationError(f"`ragaliq {point.name}` needs {install}")

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    about = found.help if found is not None else ""
    app.command(help=f"(needs {install}) {about}".strip(), context_settings=settings)(refuse)
    return _as_command(point.name, app)


def _as_command(name: str, loaded: Any) -> Any:
    app = loaded
    if not isinstance(loaded, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cls=Command)(loaded)
    command: Any = typer.main.get_command(app)
    command.name = name
    return command


def _is_installed(extra: str) -> bool:
    for needed in distribution("ragaliq").requires or ():
        name, _, marker = needed.partition(";")
        if re.search(rf"extra\s*==\s*['\"]{extra}['\"]", marker):
            try:
                version(re.split(r"[^\w.-]", name.strip(), maxsplit=1)[0])
            except PackageNotFoundError:
                return False
    return True

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
    """Command of an entry point; if its extras are missing, one that says what to install."""
    found = _as_command(point.name, point.load())
    if not point.extras or any(map(_is_installed, point.extras)):
        return found
    first, *others = (f"'ragaliq[{extra}]'" for extra in point.extras)
    install = " or ".join([f"pip install {first}", *others])

    def refuse() -> None:
        raise ConfigurationError(f"`ragaliq {point.name}` needs {install}")

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    needs = f"(needs {install})"
    app.command(
        help=f"{needs} {found.help}",
        short_help=f"{needs} {found.get_short_help_str()}",
        context_settings=settings,
    )(refuse)
    return _as_command(point.name, app)


def _as_command(name: str, loaded: Any) -> Any:
    app = loaded
    if not isinstance(loaded, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cls=Command)(loaded)
    command: Any = typer.main.get_command(app)
    command.name = name
    return command


def _is_installed(extra: str, package: str = "ragaliq") -> bool:
    """True if what an extra of a package brings is there, with the extras that it names."""
    for needed in distribution(package).requires or ():
        requirement, _, marker = needed.partition(";")
        found = re.match(r"([\w.-]+)\s*(?:\[(.*?)\])?", requirement.strip())
        if found is None or not re.search(rf"extra\s*==\s*['\"]{extra}['\"]", marker):
            continue
        name, extras = found.groups(default="")
        try:
            version(name)
        except PackageNotFoundError:
            return False
        if not all(_is_installed(each.strip(), name) for each in extras.split(",") if each):
            return False
    return True

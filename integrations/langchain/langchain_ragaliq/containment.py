"""Nothing that goes wrong while following a run may reach the application."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from langchain_ragaliq.tracker import RunTracker

__all__ = ["Contained", "contained"]

P = ParamSpec("P")


class Contained:
    """Something that follows runs, switched off while it has no tracker."""

    _tracker: RunTracker | None = None


C = TypeVar("C", bound=Contained)


def contained(
    event: Callable[Concatenate[C, RunTracker, P], None],
) -> Callable[Concatenate[C, P], None]:
    """Give an event handler the tracker, and keep every error of it from the application."""

    @functools.wraps(event)
    def handle(self: C, /, *args: P.args, **kwargs: P.kwargs) -> None:
        tracker = self._tracker
        if tracker is None:
            return
        try:
            event(self, tracker, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            tracker.complain(error)

    return handle

"""A Celery application that has only the settings it is given."""

from __future__ import annotations

from typing import Any

from celery import Celery

__all__ = ["OwnApplication"]


class OwnApplication(Celery):  # type: ignore[misc]  # Celery carries no type hints
    """Takes nothing from Celery's environment variables, and is nobody's current application.

    Args:
        address: The broker's, whatever `CELERY_BROKER_URL` says for another application.
    """

    backend_cls = "disabled"  # before CELERY_RESULT_BACKEND

    def __init__(self, address: str) -> None:
        super().__init__(
            "ragaliq",
            broker=address,
            loader="celery.loaders.app:AppLoader",  # before CELERY_LOADER
            fixups=set(),  # Django's would be put into any process with Django's settings
            set_as_current=False,
            autofinalize=False,
        )
        self._address = address

    def connection_for_read(self, url: str | None = None, **options: Any) -> Any:
        """See Celery."""
        return super().connection_for_read(url or self._address, **options)

    def connection_for_write(self, url: str | None = None, **options: Any) -> Any:
        """See Celery."""
        return super().connection_for_write(url or self._address, **options)

"""Limits that hold for all processes together: counts on Redis, and what to do without it."""

from ragaliq.scoring.limits.fleet.account import FleetAccount
from ragaliq.scoring.limits.fleet.options import require_fleet
from ragaliq.scoring.limits.fleet.storage import SharedStorage, StorageState

__all__ = ["FleetAccount", "SharedStorage", "StorageState", "require_fleet"]

"""What judging may cost in an hour and in a day."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ragaliq.core.checks import require_limits
from ragaliq.errors import ConfigurationError
from ragaliq.scoring.limits.fleet import require_fleet

__all__ = ["Budget", "BudgetLine"]

_FLEET = ("storage", "local_share", "name")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits on what judging costs in any hour and any day, for a process or for a fleet.

    A run that might go over is not judged and counted `over_budget`. What a run costs is known only
    afterwards, so what the dearest of the recent runs cost is set aside for each run that is being
    judged. A limit can be exceeded by what the runs being judged at that moment, at most
    `concurrency` in each process, cost beyond what is set aside for them, and by no more.

    Attributes:
        usd_per_hour: US dollars at list price. Where a run's price is not known, the dearest of the
            recent runs stands for it; if no price was ever known, the limit counts as used up.
        usd_per_day: The same for a day.
        tokens_per_hour: Tokens read and written, cached ones included.
        tokens_per_day: The same for a day.
        storage: Where the counts are kept: `memory://` for this process alone, or the address of a
            Redis server that all processes reach, such as `redis://host:6379/0`; then the limits
            hold for all of them together. Needs `ragaliq[redis]`.
        local_share: Part of each limit that a process keeps to by itself while the storage is away,
            above 0 and at most 1: one divided by the number of processes keeps the limits. The
            default does so up to ten of them.
        name: Whose counts these are: processes that give the same name and storage share them.

    Raises:
        ConfigurationError: A limit cannot be counted, none is given, or the storage cannot be used.
    """

    usd_per_hour: float | None = None
    usd_per_day: float | None = None
    tokens_per_hour: int | None = None
    tokens_per_day: int | None = None
    storage: str = field(default="memory://", repr=False)  # it may hold a password
    local_share: float = 0.1
    name: str = "default"

    def __post_init__(self) -> None:
        limits = self.limits()
        if not limits:
            raise ConfigurationError("Budget: give at least one limit, such as usd_per_day=5.0")
        require_limits("budget", limits)
        require_fleet("Budget", storage=self.storage, local_share=self.local_share, name=self.name)

    def limits(self) -> dict[str, float]:
        """The limits that are given, by name."""
        return {
            name: limit
            for name, limit in vars(self).items()
            if limit is not None and name not in _FLEET
        }


@dataclass(frozen=True, kw_only=True)
class BudgetLine:
    """One limit and where it stands.

    Attributes:
        limit: US dollars or tokens.
        spent: What the runs of the last hour or day cost.
        reserved: What is set aside for runs that are being judged.
        scope: `fleet` where the figures are those of all processes, as of the last run here;
            `process` where they are this process's own, also while the fleet's storage is away,
            with its share as the limit.
    """

    limit: float
    spent: float
    reserved: float
    scope: Literal["process", "fleet"] = "process"

    @property
    def left(self) -> float:
        """What may still be spent."""
        return max(0.0, self.limit - self.spent - self.reserved)

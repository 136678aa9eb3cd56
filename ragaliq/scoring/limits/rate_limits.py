"""Judge calls in a minute: those beyond the limit wait for their turn."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragaliq.core.checks import require_limits
from ragaliq.errors import ConfigurationError
from ragaliq.scoring.limits.fleet import require_fleet

__all__ = ["RateLimits"]


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """How often the judge may be asked, in any minute, by a process or by a fleet.

    Calls wait for their turn on the worker, in the order they came, at most until their metric's
    deadline. The tokens of a call are known only when it is over: until then the mean of recent
    calls stands for them, and what it used beyond that is counted then.

    Attributes:
        requests_per_minute: Calls of the judge. Repeats made by an SDK on its own are not seen.
        tokens_per_minute: Tokens read and written, cached ones included.
        storage: Where the counts are kept: `memory://` for this process alone, or the address of a
            Redis server that all processes reach, such as `redis://host:6379/0`; then the limits
            hold for all of them together. Needs `ragaliq[redis]`.
        local_share: Part of each limit that a process keeps to by itself while the storage is away,
            above 0 and at most 1: one divided by the number of processes keeps the limits. The
            default does so up to ten of them. A call a minute is always allowed.
        name: Whose counts these are: processes that give the same name and storage share them.

    Raises:
        ConfigurationError: A limit cannot be counted, none is given, or the storage cannot be used.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    storage: str = field(default="memory://", repr=False)  # it may hold a password
    local_share: float = 0.1
    name: str = "default"

    def __post_init__(self) -> None:
        given = {f"{name}_per_minute": limit for name, limit in self.limits().items()}
        if not given:
            raise ConfigurationError(
                "RateLimits: give requests_per_minute, tokens_per_minute or both"
            )
        require_limits("judge_limits", given)
        require_fleet(
            "RateLimits", storage=self.storage, local_share=self.local_share, name=self.name
        )

    def limits(self) -> dict[str, int]:
        """The limits that are given, by what they limit."""
        limits = {"requests": self.requests_per_minute, "tokens": self.tokens_per_minute}
        return {name: limit for name, limit in limits.items() if limit is not None}

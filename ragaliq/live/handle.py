"""What is handed around: closed by leaving its context, and never really copied."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import NoReturn, Self

__all__ = ["Handle"]


class Handle(ABC):
    """A context manager that closes itself, and of which a copy is the thing itself."""

    @abstractmethod
    def close(self, timeout: float = 30.0) -> bool:
        """End it; whether everything was done within `timeout` seconds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Monitors are handed around inside chains, which frameworks copy: a copy is the same monitor.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(
            f"a {kind} has a thread and a queue and cannot be pickled or sent to another process; "
            f"build one there, for instance in the worker's initializer"
        )

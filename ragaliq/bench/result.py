"""A bench: what a judge made of a file of labelled claims, and the figures that follow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragaliq.bench.figures import JudgeFigures, judge_figures
from ragaliq.bench.judged import JudgedClaim
from ragaliq.errors import DatasetError
from ragaliq.judges.base import LLMJudge

__all__ = ["BENCH_VERSION", "JudgeBench", "bench_of"]

BENCH_VERSION = 1


class JudgeBench(BaseModel):
    """Figures over all claims and group by group, with the decisions behind them; no text.

    Attributes:
        schema_version: Of this form.
        data: Name of the file of labelled claims.
        judge: Name of the judge.
        model: Its model, when it has one.
        fingerprint: Of its parameters or prompts.
        calibration: Id of its calibration; `uncalibrated` where its confidence is no probability.
        created: The day it was made (UTC, ISO 8601).
        overall: Figures over all claims.
        groups: Figures of each group, where there are several.
        judged: The decisions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    schema_version: int = Field(default=BENCH_VERSION, ge=1, le=BENCH_VERSION)
    data: str
    judge: str
    model: str | None = None
    fingerprint: str
    calibration: str
    created: str
    overall: JudgeFigures
    groups: dict[str, JudgeFigures] = Field(default_factory=dict)
    judged: tuple[JudgedClaim, ...]

    @property
    def title(self) -> str:
        """The judge in words."""
        name = f"{self.judge} ({self.model})" if self.model else self.judge
        return f"{name}, {self.calibration}"

    def save(self, path: str | Path) -> None:
        """Write the bench as JSON.

        Raises:
            DatasetError: The file cannot be written.
        """
        try:
            Path(path).write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise DatasetError(f"{path}: {error.strerror or error}") from None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a bench that `save` wrote.

        Raises:
            DatasetError: The file is missing or no bench.
        """
        try:
            return cls.model_validate_json(Path(path).read_bytes())
        except OSError as error:
            raise DatasetError(f"{path}: {error.strerror or error}") from None
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors()[0]["loc"]) or "it"
            raise DatasetError(
                f"{path} is no bench of a judge ({place} is not as ragaliq writes it); make one "
                "with `ragaliq judge bench DATA --out bench.json`"
            ) from None


def bench_of(
    judged: Sequence[JudgedClaim], judge: LLMJudge, *, data: str, seed: int = 0
) -> JudgeBench:
    """Compute the figures of what a judge decided.

    Args:
        judged: The decisions, in any order.
        judge: Who decided.
        data: Name of the file of labelled claims.
        seed: Of the resampling.

    Raises:
        DatasetError: There are no decisions.
    """
    if not judged:
        raise DatasetError(f"{data}: no claim was judged")
    rows = sorted(judged, key=lambda row: row.id)
    names = sorted({row.group for row in rows})
    groups = {
        name or "(none)": judge_figures([row for row in rows if row.group == name], seed=seed)
        for name in names
    }
    return JudgeBench(
        data=data,
        judge=judge.name,
        model=judge.model,
        fingerprint=judge.fingerprint(),
        calibration=judge.calibration,
        created=datetime.now(UTC).date().isoformat(),
        overall=judge_figures(rows, seed=seed),
        groups=groups if len(groups) > 1 else {},
        judged=tuple(rows),
    )

"""One labelled claim after a judge has seen it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ragaliq.core.results import JudgeUsage, Verdict

__all__ = ["JudgedClaim"]


class JudgedClaim(BaseModel):
    """What a judge made of a labelled claim; holds no text.

    Attributes:
        id: Of the labelled claim.
        group: Its group; empty for none.
        cluster: Names its context; claims over one context are not independent.
        is_supported: The label.
        label: The label as one of three verdicts, where it says that much.
        verdict: The judge's; None when it failed.
        support: How far the judge's confidence speaks for the claim, 0 to 1; None when it failed.
        failure: `judge_refused`, `judge_timeout` or `judge_error`; None otherwise.
        error_type: The class of that error.
        seconds: What the decision took.
        usage: What it cost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    id: str
    group: str = ""
    cluster: str
    is_supported: bool
    label: Verdict | None = None
    verdict: Verdict | None = None
    support: float | None = Field(default=None, ge=0.0, le=1.0)
    failure: str | None = None
    error_type: str | None = None
    seconds: float = Field(ge=0.0)
    usage: JudgeUsage = JudgeUsage()

    @property
    def is_right(self) -> bool:
        """Whether the judge calls supported what is, and nothing else; False when it failed."""
        return self.verdict is not None and (self.verdict == "SUPPORTED") == self.is_supported

"""A run on its way to the judge, and what comes back. Jobs are plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ragaliq.core.draft import CaseDraft
from ragaliq.core.results import Evaluation
from ragaliq.core.run import RunInfo, SpanTarget
from ragaliq.core.test_case import RAGTestCase
from ragaliq.live.sampling.choice import Choice
from ragaliq.worker.message import Job

if TYPE_CHECKING:
    from ragaliq.live.receipt import Receipt

__all__ = ["Framework", "Submission"]


Framework = Literal["", "langchain", "llama_index"]
_UNSAMPLED = Choice()
# The plain class first: asking a pydantic one takes longer than making the submission.
_CASES = (CaseDraft, RAGTestCase)


@dataclass(slots=True, kw_only=True)
class Submission:
    """A finished run on its way to the worker, which makes a job of it.

    Attributes:
        case: Question, context and answer.
        run_id: The framework's id of the run.
        pipeline: The application's name for the chain.
        framework: The framework that ran it.
        target: The span the evaluation will speak about.
        session_id: The conversation, when the application names it.
        response_id: The model's id of the response, when known.
        ended_at: Unix time in seconds.
        choice: Why the run is evaluated, and with which metrics.
        receipt: Where somebody waits for the result.
        priority: Higher ones are judged first, and keep their place in a full queue.
    """

    case: RAGTestCase | CaseDraft
    run_id: str
    pipeline: str
    framework: Framework
    target: SpanTarget | None
    session_id: str | None
    response_id: str | None
    ended_at: float
    choice: Choice = _UNSAMPLED
    receipt: Receipt | None = None
    priority: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.case, _CASES):
            raise TypeError(
                f"a case is a RAGTestCase or a CaseDraft, not {type(self.case).__name__}"
            )

    def settle(self, outcome: Evaluation | str) -> None:
        """Tell whoever waits what came of the run: its result, or why there is none."""
        if self.receipt is not None:
            self.receipt.settle(outcome)

    def chosen(self, choice: Choice) -> None:
        """Note why the run is evaluated; what a rule chose goes before what the rate chose."""
        self.choice = choice
        self.priority = int(choice.reason != "rate")

    @property
    def size(self) -> int:
        """Bytes its texts take while it waits."""
        return self.case.size

    def job(self) -> Job:
        """The job, checked.

        Raises:
            pydantic.ValidationError: Something is of the wrong type; nothing is quoted.
        """
        return Job(case=self.built(), run=self.run())

    def built(self) -> RAGTestCase:
        """The case, checked; raises as `job` does."""
        return self.case.build() if isinstance(self.case, CaseDraft) else self.case

    def run(self) -> RunInfo:
        """Where the answer came from and how it was chosen, checked; raises as `job` does."""
        return RunInfo(
            run_id=self.run_id,
            pipeline=self.pipeline,
            framework=self.framework,
            target=self.target,
            sampling_probability=self.choice.probability,
            sampling_reason=self.choice.reason,
            sampling_rules=self.choice.rules,
            metric_probabilities=dict(self.choice.metrics),
            represents_traffic=self.choice.represents_traffic,
            session_id=self.session_id,
            response_id=self.response_id,
            ended_at=self.ended_at,
        )

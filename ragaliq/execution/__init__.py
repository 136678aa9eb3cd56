"""Where judging happens: on the worker's own thread, or in a process of its own."""

from ragaliq.execution.choice import EXECUTORS, Executor, choose_scorer
from ragaliq.execution.seam import CaseScorer, ThreadScorer

__all__ = ["EXECUTORS", "CaseScorer", "Executor", "ThreadScorer", "choose_scorer"]

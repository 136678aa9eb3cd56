"""Guards: answers below a threshold are replaced, annotated, made again or stopped."""

from ragaliq.guards.guard import Action, Guard, Step
from ragaliq.guards.outcome import Decision, GuardResult

__all__ = ["Action", "Decision", "Guard", "GuardResult", "Step"]

"""Logs of runs that have ended, as adapters submit them."""

from ragaliq import Passage
from ragaliq.capture import Found, RunLog


def ended_run(query, passages, response, *, run_id="a", tags=(), had_errors=False):
    """A run whose application named its context itself."""
    log = RunLog(run_id)
    log.question, log.answer = Found(query, "input"), Found(response, "output")
    log.passages = [Passage(each) if isinstance(each, str) else each for each in passages]
    log.tags, log.had_errors = tags, had_errors
    return log

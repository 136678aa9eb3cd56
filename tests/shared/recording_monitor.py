"""A monitor that keeps what it evaluates."""

from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge


class RecordingMonitor(Monitor):
    """A monitor that keeps its results."""

    def __init__(self, **options):
        self.results = []
        super().__init__(judge=ScriptedJudge(), on_result=self.results.append, **options)

    @property
    def evaluated(self):
        """Results in the order in which their runs ended."""
        assert self.flush(30)
        return sorted(self.results, key=lambda result: result.run.ended_at)

    @property
    def cases(self):
        return [result.case for result in self.evaluated]

    @property
    def only(self):
        """Question, contexts and answer of the one run there was."""
        (case,) = self.cases
        assert self.outcomes == {"evaluated": 1}
        return case.query, case.context_texts, case.response

    @property
    def outcomes(self):
        """How runs ended, and why those that could not be evaluated did."""
        assert self.flush(30)
        stats = self.stats()
        assert stats.started == sum(stats.outcomes.values()) + stats.pending
        return {k: v for k, v in stats.outcomes.items() if k != "incomplete_run"} | stats.incomplete

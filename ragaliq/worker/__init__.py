"""Jobs beyond one process: published by monitors, evaluated by `ragaliq worker`.

An annex: the main house reaches it by entry points and by name, and imports none of it.
"""

from ragaliq.worker.executor import BrokerExecutor, JobExecutor
from ragaliq.worker.worker import WorkerSettings

__all__ = ["BrokerExecutor", "JobExecutor", "WorkerSettings"]

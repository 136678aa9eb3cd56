"""Jobs beyond one process: published by monitors, judged by `ragaliq worker`, kept by a broker.

An annex: the main house reaches it by entry points and by name, and imports none of it.
"""

from ragaliq.worker.executor import BrokerExecutor, JobExecutor
from ragaliq.worker.worker import WorkerSettings

__all__ = ["BrokerExecutor", "JobExecutor", "WorkerSettings"]

"""Production traffic: sampled, queued and scored off the request path."""

from ragaliq.core.guard import is_suppressed, suppress
from ragaliq.live.job import Job, LiveResult
from ragaliq.live.monitor import Monitor
from ragaliq.live.sampling import Sampler
from ragaliq.live.stats import MonitorStats
from ragaliq.live.ticket import RunTicket

__all__ = [
    "Job",
    "LiveResult",
    "Monitor",
    "MonitorStats",
    "RunTicket",
    "Sampler",
    "is_suppressed",
    "suppress",
]

"""What the workers do, for `ragaliq worker --app settings:worker`.

There is no store here: a SQLite file wants a disk of one machine. Scores are in the telemetry; a
sink of Phoenix, Langfuse or MLflow keeps records.
"""

import os

from ragaliq import Budget, RateLimits
from ragaliq.worker import WorkerSettings

# Counted on Redis, so that the limits hold for all workers together. While it is away each keeps to
# its share: one divided by the largest number of workers, as in scaling.yaml.
shared = {"storage": os.environ["LIMITS_URL"], "local_share": 1 / 10, "name": "library"}

worker = WorkerSettings(
    judge="claude",
    metrics=["faithfulness", "relevance"],
    budget=Budget(usd_per_day=20.0, **shared),
    judge_limits=RateLimits(requests_per_minute=600, **shared),
)

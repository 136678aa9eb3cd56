"""What the workers do, for `ragaliq worker --app settings:worker`.

There is no store here: a SQLite file wants a disk of one machine. Scores are in the telemetry; a sink
of Phoenix, Langfuse or MLflow keeps records, and takes one that comes twice as one.
"""

from ragaliq import Budget, WorkerSettings

worker = WorkerSettings(
    judge="claude",
    evaluators=["faithfulness", "relevance"],
    # In each worker: divide by the largest number of replicas.
    budget=Budget(usd_per_day=2.0),
)

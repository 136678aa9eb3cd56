"""What stands between a run and the judge: breaker, budgets, rate limits; of one process or all."""

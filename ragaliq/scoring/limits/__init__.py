"""What stands between a run and the judge: breaker, budgets, rate limits; alone or for a fleet."""

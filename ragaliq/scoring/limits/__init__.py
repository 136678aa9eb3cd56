"""Limits between a run and the judge: breaker, budgets, rate limits; for one process or all."""

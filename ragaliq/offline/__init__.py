"""Evaluation of many cases: jobs, their goals, and cost estimates."""

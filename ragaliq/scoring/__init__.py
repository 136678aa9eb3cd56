"""Evaluation of cases: the scorer, the limits before the judge, the child process.

Nothing is imported here: the child process loads this package and needs little of it.
"""

"""Judging elsewhere: applications publish jobs, workers on Celery judge, emit and store them.

The application's side is `CeleryExecutor`, the other `ragaliq worker`. What travels between them is
plain JSON (`message`); what cannot be judged is put where somebody can look at it (`set_aside`).
"""

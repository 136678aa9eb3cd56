"""Many cases judged once: jobs, their goals, and what they would cost."""

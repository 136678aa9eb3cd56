"""Which runs are evaluated, with which metrics, and with what chance."""

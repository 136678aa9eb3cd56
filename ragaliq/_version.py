"""The version of all three distributions, which are released together."""

__version__ = "1.0.0"

"""One interval for means and shares, its form for pairs, and Wilson's; no dependency but Python.

Settings out of range raise ConfigurationError; unusable data (none, NaN, different lengths,
probabilities outside (0, 1]) raises DatasetError. Figures of judges and reviewers are in
`ragaliq.lab`.
"""

from ragaliq.statistics.intervals import Estimate, wilson
from ragaliq.statistics.sampling import PairedDifference, hajek_mean, paired_difference

__all__ = ["Estimate", "PairedDifference", "hajek_mean", "paired_difference", "wilson"]

"""Recipe of the embedded judge's parameters, and their figures; the package does not have it."""

"""Training and measurement of the embedded judge's parameters; not used at run time."""

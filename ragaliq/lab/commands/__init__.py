"""The laboratory's commands: `label`, `judge`, `calibrate` and `quality`."""

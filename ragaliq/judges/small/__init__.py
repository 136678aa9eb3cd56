"""Small models as judges: named presets, any Hugging Face or ONNX classifier, or any function."""

from ragaliq.judges.small.judge import EntailmentJudge
from ragaliq.judges.small.presets import PRESETS, Preset

__all__ = ["PRESETS", "EntailmentJudge", "Preset"]

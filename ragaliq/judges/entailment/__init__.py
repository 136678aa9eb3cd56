"""An entailment model of the user's as a judge: Hugging Face, ONNX, or any function."""

from ragaliq.judges.entailment.judge import EntailmentJudge
from ragaliq.judges.entailment.models import PairScorer, Support

__all__ = ["EntailmentJudge", "PairScorer", "Support"]

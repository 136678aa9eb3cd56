"""What people would say about the answers: labels, figures anchored to them, and alarms."""

from ragaliq.quality.alarm import QualityAlarm, QualityChange
from ragaliq.quality.figures import JudgeChange, QualitySeries, QualityWeek, quality_of
from ragaliq.quality.labels import (
    Anchor,
    AnchorFile,
    Draw,
    DrawnAnswer,
    LabelledAnswer,
    Labels,
    beside,
    draw_answers,
    read_labels,
)

__all__ = [
    "Anchor",
    "AnchorFile",
    "Draw",
    "DrawnAnswer",
    "JudgeChange",
    "LabelledAnswer",
    "Labels",
    "QualityAlarm",
    "QualityChange",
    "QualitySeries",
    "QualityWeek",
    "beside",
    "draw_answers",
    "quality_of",
    "read_labels",
]

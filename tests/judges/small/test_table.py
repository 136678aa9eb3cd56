"""The documentation's table of presets has the code's, with their figures."""

import re
from pathlib import Path

from ragaliq.judges.small import PRESETS

PAGE = Path(__file__).parents[3] / "docs" / "pages" / "entailment.md"


def test_the_page_lists_each_preset_with_its_figures():
    text = PAGE.read_text("utf-8")
    for preset in PRESETS.values():
        assert f"`{preset.name}`" in text
        assert all(figure in text for figure in re.findall(r"\d\d\.\d", preset.figure))
        assert preset.source

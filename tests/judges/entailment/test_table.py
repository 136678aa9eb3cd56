"""The documentation's table of presets is the code's."""

from pathlib import Path

from ragaliq.judges.entailment import PRESETS

PAGE = Path(__file__).parents[3] / "docs" / "pages" / "entailment.md"


def test_the_page_lists_each_preset_as_it_is():
    lines = PAGE.read_text("utf-8").splitlines()
    for preset in PRESETS.values():
        row = f"| `{preset.name}` | {preset.hub} | {preset.licence} | {preset.figure} |"
        assert row in lines
        assert preset.source

"""The documentation's table of presets is the code's."""

from pathlib import Path

import pytest

from ragaliq.judges.entailment import PRESETS

PAGE = Path(__file__).parents[3] / "docs" / "pages" / "entailment.md"


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_the_page_lists_each_preset_as_it_is(preset):
    row = f"| `{preset.name}` | {preset.hub} | {preset.licence} | {preset.figure} |"
    assert row in PAGE.read_text("utf-8").splitlines()
    assert preset.source

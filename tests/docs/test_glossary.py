"""The words that pages and sources share: one word for one thing."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/pages/**/*.md"), *ROOT.glob("integrations/*/README.md")]
)
# Lists of English words that a judge knows.
VOCABULARIES = ("local/words.py", "local/relevance.py", "language/statements.py")
SOURCES = sorted(
    path
    for path in [*ROOT.glob("ragaliq/**/*.py"), *ROOT.glob("integrations/**/*.py")]
    if not str(path).endswith(VOCABULARIES)
)

REJECTED = {
    r"anew": "again",
    r"set(?:s|ting)? aside": "dead letter",
    r"hand(?:s|ed|ing)? over": "enqueue, pass",
    r"left[ -]out|leav(?:e|es|ing) out": "skip, exclude, held-out",
    r"told": "the verb that says what happens",
    r"whoever": "the one who, a person",
    r"beside": "next to, besides, with",
    r"of (?:yours|one's own)": "your, own",
    r"to be had": "available",
    r"campaigns?": "run",
    r"fleets?": "workers, shared",
    r"patience": "timeout",
}
REJECTED_IN_SOURCES = {
    r"an application's own": "the application's, your application's",
    r"(?<!there )(?:is|are) no(?! longer| more)": "is not a",
    r"stand(?:s|ing)? in": "replace, occur in",
}
REJECTED_IN_PAGES = {
    r"passage": "chunk",
    r"judging": "evaluation",
    r"stand(?:s|ing)? in": "replace",
    r"there (?:is|are) no|(?:is|are) no": "has none, without, not",
    r"go(?:es)? on with": "continue, resume",
}


def prose(path):
    """A page without its code, or the strings and comments of a module without theirs."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|::: \S*", "", text, flags=re.DOTALL)
    strings = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    comments = re.findall(r"(?:^|  )# (.*)$", text, re.MULTILINE)
    # A string without a blank is a name: of an option, an attribute, a key.
    sentences = [value for value in strings if isinstance(value, str) and " " in value]
    return re.sub(r"`[^`\n]*`", "", "\n".join([*sentences, *comments]))


@pytest.mark.parametrize(
    ("paths", "rejected"),
    [(PAGES, REJECTED | REJECTED_IN_PAGES), (SOURCES, REJECTED | REJECTED_IN_SOURCES)],
    ids=["pages", "sources"],
)
def test_rejected_words_do_not_occur(paths, rejected):
    pattern = re.compile(rf"\b(?:{'|'.join(rejected)})\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in paths
        for match in pattern.finditer(prose(path))
    ]
    assert found == []

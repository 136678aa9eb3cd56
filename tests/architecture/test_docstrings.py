"""Docstrings say first what something is or does, for a reader who reads them once."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in (ROOT / "ragaliq", ROOT / "integrations")
    for path in folder.rglob("*.py")
    if "tests" not in path.relative_to(ROOT).parts
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
DEPENDENT_CLAUSE = re.compile(r"(?:What|Whether|Where|How|Which|Who)\b")


def test_no_docstring_begins_with_a_dependent_clause():
    found = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node))
        if DEPENDENT_CLAUSE.match(text)
    ]
    assert SOURCES
    assert found == []

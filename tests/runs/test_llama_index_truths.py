"""The declared truth of the LlamaIndex applications holds for what their models were shown."""

import html
import re

import pytest
from harness import applications, call, contains
from llama_index_fakes import PROMPTS


def _unescaped(text):
    return html.unescape(re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text))


@pytest.mark.filterwarnings("ignore")
def test_declared_evidence_was_shown_to_a_model():
    wrong = {}
    for application in applications("llama_index").values():
        PROMPTS.clear()
        call(application.run)
        # A provider shows its model what it found, and cites that in the reply.
        shown = [prompt + reply * ("CitationBlock" in reply) for prompt, reply in PROMPTS]
        shown = _unescaped("\n".join(shown))
        evidence = [*application.chunks, *application.prompt]
        if PROMPTS and (never := [text for text in evidence if not contains(shown, text)]):
            wrong[application.name] = never
    assert wrong == {}

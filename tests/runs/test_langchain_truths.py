"""The declared truth of the LangChain applications holds for what their models were shown."""

import json
import re

import pytest
from harness import applications, call, contains
from langchain_core.callbacks import BaseCallbackHandler

ELSEWHERE = "provider search"  # what a provider found is in its reply, or in options of the call


class Prompts(BaseCallbackHandler):
    """The texts of all prompts of an application."""

    run_inline = True

    def __init__(self):
        self.texts = []

    def on_chat_model_start(self, serialized, messages, **kwargs):
        for message in messages[0]:
            self.texts.append(json.dumps(message.content, ensure_ascii=False))

    def on_llm_start(self, serialized, prompts, **kwargs):
        self.texts += prompts


def readable(text):
    """A text of JSON, of JSON in JSON, or another, without their escapes."""
    text = re.sub(r"\\+u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    return re.sub(r"\\+[nt]", " ", text)


@pytest.mark.filterwarnings("ignore")
def test_declared_evidence_was_shown_to_a_model():
    wrong = {}
    for application in applications("langchain").values():
        if application.attached or application.shape == ELSEWHERE:
            continue
        prompts = Prompts()
        call(application.run, {"callbacks": [prompts]})
        shown = readable("\n".join(prompts.texts))
        evidence = [*application.chunks, *application.prompt]
        never = [text for text in evidence if not contains(shown, readable(text))]
        if prompts.texts and never:
            wrong[application.name] = never
    assert wrong == {}

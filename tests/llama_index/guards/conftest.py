"""Guards and models that answer as told."""

import pytest

from ragaliq import Guard
from ragaliq.testing import ScriptedJudge


@pytest.fixture
def guard_of():
    made = []

    def build(**options):
        options.setdefault("judge", ScriptedJudge())
        options.setdefault("fallback", "I do not know.")
        made.append(Guard(**options))
        return made[-1]

    yield build
    for guard in made:
        guard.monitor.close(1.0)


@pytest.fixture
def llm_of(scripted_llm):
    """A model that gives these answers in turn, and the prompts it was given."""

    def build(*replies):
        prompts = []

        def reply(prompt):
            prompts.append(prompt)
            return replies[min(len(prompts), len(replies)) - 1]

        return scripted_llm(reply=reply), prompts

    return build

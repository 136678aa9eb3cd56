"""The words by which chat templates mark turns, made harmless in texts that are data.

Servers for open models write all messages of a chat into one text and then look for the model's
control tokens in it, also within what a message says: with llama.cpp, `<|im_start|>` in an answer
is read as the one token that begins a turn, and the answer goes on as whoever it likes. An
invisible character behind the first bracket keeps that from happening.
"""

from __future__ import annotations

import re

__all__ = ["defuse", "restore"]

_JOINER = "\u2060"  # WORD JOINER: no width, no space, no line break
_OPENING = re.compile(
    # ChatML, Llama 3 and later, Phi, GLM, Command, gpt-oss; Gemma 4 leaves out one of the bars
    r"<(?=\|[^\s<>|]{1,64}\|?>|[^\s<>|]{1,64}\|>"
    # DeepSeek
    r"|｜[^\s<>｜]{1,64}｜>"
    # Gemma and the ends of texts; <s> and </s> open no turn, and are HTML
    r"|(?:start_of_turn|end_of_turn|bos|eos)>|<SYS>>|</SYS>>)"
    # Mistral and Llama 2; EXAONE
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\]"
    r"|\|[^\s\[\]|]{1,64}\|\])"
)
_DEFUSED = re.compile(f"(?<=[<\\[]){_JOINER}")


def defuse(text: str) -> str:
    """A text in which no control token of a chat template is left; others stay as they are."""
    return _OPENING.sub(rf"\g<0>{_JOINER}", text)


def restore(text: str) -> str:
    """A reply that quotes a defused text, as if it quoted the original."""
    return _DEFUSED.sub("", text)

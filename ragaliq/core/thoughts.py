"""Removal of a reasoning model's thoughts from its answer.

Servers that are started with the model's reasoning parser send thoughts separately from the answer.
Others leave them in the text, in the tags of the model's chat template:

    <think> ... </think>          DeepSeek, Qwen, Phi, Granite; also thinking, thought, reasoning,
                                  and with a prefix, as in <seed:think>
    [THINK] ... [/THINK]          Magistral
    ◁think▷ ... ◁/think▷          Kimi
    <|START_THINKING|> ... <|END_THINKING|>           Command
    <|begin_of_thought|> ... <|end_of_thought|>       Sky-T1 and its kin
    <|channel|>analysis<|message|> ... <|end|>        gpt-oss: only the channel `final` is said
    <|channel>thought ... <channel|>                  Gemma 4
"""

from __future__ import annotations

import re

_CODE = r"^[^\S\n]*+(?P<fence>```|~~~).*?(?:^[^\S\n]*+(?P=fence)|\Z)"
_NAME = r"(?:[a-z]{1,12}:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?)"
# A fence is matched first and kept: an answer about prompts may show such tags in a block of code.
# Thoughts without an end reach to the end of the text, so that nothing is read twice.
_THOUGHTS = re.compile(
    rf"""(?P<code>{_CODE})
    | (?:^|(?<=[>\]▷}}]))[^\S\n]*+(?:
        <(?P<tag>{_NAME})>.*?(?:</(?P=tag)>|\Z)
      | \[(?P<bracket>{_NAME})\].*?(?:\[/(?P=bracket)\]|\Z)
      | ◁(?P<triangle>{_NAME})▷.*?(?:◁/(?P=triangle)▷|\Z)
      | <\|start_{_NAME}\|>.*?(?:<\|end_{_NAME}\|>|\Z)
      | <\|begin_of_{_NAME}\|>.*?(?:<\|end_of_{_NAME}\|>|\Z)
      | <\|channel>{_NAME}\b.*?(?:<channel\|>|\Z)
    )""",
    re.DOTALL | re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
# Chat templates often write the opening tag themselves, so that the reply holds only the end.
_LONE_END = re.compile(
    rf"{_CODE}|(?<!`)(?P<end></{_NAME}>|\[/{_NAME}\]|◁/{_NAME}▷|<\|end_(?:of_)?{_NAME}\|>)(?!`)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_STARTS_JSON = re.compile(r"\s*+(?:```\w{0,10}\s*+)?[\[{\"]\s*+[\[{\"\]}\w-]")
_CHANNEL = "<|channel|>"
_SAID = re.compile(
    r"<\|channel\|>\s*final\b[^<]{0,80}(?:<\|constrain\|>[^<]{0,80})?<\|message\|>"
    r"(.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)
_SIGNS = ("<", "[/", "[T", "[t", "[R", "[r", "◁")


def without_thoughts(text: str) -> str:
    """Remove the thoughts from a model's reply; empty if it holds nothing else.

    A text without thoughts is returned as it is.
    """
    if not any(sign in text for sign in _SIGNS):
        return text
    if text.lstrip().startswith(_CHANNEL):
        return "".join(_SAID.findall(text)).strip()
    said = _THOUGHTS.sub(_kept, text)
    if not _STARTS_JSON.match(said):
        ends = [match.end() for match in _LONE_END.finditer(said) if match["end"]]
        said = said[ends[-1] :] if ends else said
    return text if len(said) == len(text) else said.strip()


def _kept(match: re.Match[str]) -> str:
    return match["code"] or ""

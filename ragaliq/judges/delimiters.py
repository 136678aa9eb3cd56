"""Puts application text into a prompt so that it can never leave its place.

The text stands unchanged between two tags: JSON, code and markup reach the judge as they are. As
with a Markdown fence, it is the tag that gives way: where a text holds anything that reads like
the tag (`</answer>`, `</ ANSWER >`, full-width letters, zero-width characters in between), the
tag gets a number which that text does not hold (`<answer-2>`). The choice depends on nothing but
the text, so equal contexts give equal prompts and a provider's prompt cache can serve them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

__all__ = ["delimit", "delimit_list"]

# Characters a reader may take for "<", beside those that NFKC turns into it.
_LESS_THAN = dict.fromkeys(map(ord, "\u02c2\u1438\u2039\u2329\u276e\u27e8\u3008\ufe64\uff1c"), "<")
# White space, control, formatting and other characters without a glyph.
_INVISIBLE = re.compile(
    "[\\s\\x00-\\x1f\\x7f-\\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff]+"
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def delimit(tag: str, text: str) -> str:
    """`text` between an opening and a closing `tag`, each on a line of its own."""
    name = tag + _free_suffix((tag,), (text,))
    return f"<{name}>\n{_encodable(text)}\n</{name}>"


def delimit_list(tag: str, item_tag: str, ids: Iterable[object], texts: Sequence[str]) -> str:
    """Every text between tags that carry its id, and all of them between two outer tags.

    Args:
        tag: The outer tag.
        item_tag: The tag of one text.
        ids: One id for each text; ours, never the application's.
        texts: What to enclose.
    """
    suffix = _free_suffix((tag, item_tag), texts)
    outer, inner = tag + suffix, item_tag + suffix
    lines = [f"<{outer}>"]
    for item_id, text in zip(ids, texts, strict=True):
        lines.append(f'<{inner} id="{item_id}">\n{_encodable(text)}\n</{inner}>')
    lines.append(f"</{outer}>")
    return "\n".join(lines)


def _free_suffix(tags: Sequence[str], texts: Iterable[str]) -> str:
    """Nothing, or the smallest `-number` no text holds behind one of `tags`; linear in time."""
    lookalike = re.compile(rf"</?(?:{'|'.join(map(re.escape, tags))})(?:-([0-9]{{1,9}}))?")
    found = False
    taken: set[str] = set()
    for text in texts:
        for digits in lookalike.findall(_folded(text)):
            found = True
            # `</answer-2` also begins `</answer-23`: every beginning counts as taken.
            taken.update(digits[:length] for length in range(1, len(digits) + 1))
    if not found:
        return ""
    number = 2
    while str(number) in taken:
        number += 1
    return f"-{number}"


def _folded(text: str) -> str:
    """What is left of `text` for a reader who overlooks case, width and invisible characters."""
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text.translate(_LESS_THAN)).casefold())


def _encodable(text: str) -> str:
    # Half a surrogate pair has no UTF-8 form: the request could not be sent.
    return _SURROGATES.sub("\ufffd", text) if _SURROGATES.search(text) else text

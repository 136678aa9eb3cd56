"""The prompts: text files with a version, replaceable one by one, and texts put into them safely.

An application's text stands unchanged between two tags: JSON, code and markup reach the judge as
they are. As with a Markdown fence, it is the tag that gives way: where a text holds anything that
reads like the tag (`</answer>`, `</ ANSWER >`, full-width letters, zero-width characters in
between), the tag gets a number which that text does not hold (`<answer-2>`). The choice depends on
nothing but the text, so equal contexts give equal prompts and a provider's prompt cache can serve
them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from ragaliq.errors import ConfigurationError

__all__ = ["PLACEHOLDERS", "PromptSet", "PromptSource", "RenderedPrompt", "delimit", "delimit_list"]


PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "system": frozenset(),
    "extract_statements": frozenset({"question", "answer"}),
    "verify_claims": frozenset({"context", "claims"}),
    "grade_statements": frozenset({"question", "answer", "context"}),
    "relevance": frozenset({"question", "answer"}),
    "context_relevance": frozenset({"question", "chunk"}),
    "reply_form": frozenset({"form"}),
}
"""The prompts there are, and the placeholders each of them must hold."""

PromptSource = Mapping[str, str | Path] | Path | Literal["v1"]
"""What to use instead of ours: name to text or file, a folder of `<name>.md`, one such file, or our
version 1 (`v1`), for those whose figures were made with it."""

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n?---[ \t]*(?:\n|\Z)", re.DOTALL)
_VERSION = re.compile(r"^version:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt with everything filled in.

    Attributes:
        name: Which prompt it is.
        system: The system prompt.
        shared: The beginning of the request, up to the end of the context: the same text for every
            call over one context. Empty where something else comes before the context.
        request: The rest of the request.
        expected: How many verdicts are asked for, where that is known.
    """

    name: str
    system: str
    shared: str
    request: str
    expected: int | None = None

    @property
    def text(self) -> str:
        """The whole request."""
        return self.shared + self.request


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as it was written, checked when it is made.

    Attributes:
        name: One of `PLACEHOLDERS`.
        version: From the file's front matter; else taken from the text's hash.
        text: The template.
        source: Where it came from, for messages.

    Raises:
        ConfigurationError: The name is unknown, the text empty, or a placeholder wrong or missing.
    """

    name: str
    version: str
    text: str
    source: str

    @classmethod
    def parse(cls, name: str, raw: str, source: str) -> Prompt:
        """Split off the front matter."""
        raw = raw.removeprefix("\ufeff").replace("\r\n", "\n")
        front = _FRONT_MATTER.match(raw)
        version = _VERSION.search(front.group(1)) if front else None
        return cls(
            name=name,
            version=version.group(1) if version else hashlib.sha256(raw.encode()).hexdigest()[:8],
            text=(raw[front.end() :] if front else raw).strip(),
            source=source,
        )

    def __post_init__(self) -> None:
        _check_name(self.name, self.source)
        if not self.text:
            raise ConfigurationError(f"prompt {self.name!r} ({self.source}) is empty")
        expected, found = PLACEHOLDERS[self.name], set(_PLACEHOLDER.findall(self.text))
        faults = []
        if unknown := found - expected:
            faults.append(f"unknown placeholder {_listed(unknown)}")
        if missing := expected - found:
            faults.append(f"missing placeholder {_listed(missing)}")
        if faults:
            takes = f"it takes {_listed(expected)}" if expected else "it takes no placeholders"
            raise ConfigurationError(
                f"prompt {self.name!r} ({self.source}): {' and '.join(faults)}; {takes}"
            )

    def render(self, system: str, blocks: Mapping[str, str]) -> RenderedPrompt:
        """Fill in `blocks` in one pass: what they hold is never looked at again."""
        pieces = _PLACEHOLDER.split(self.text)
        names = pieces[1::2]
        pieces[1::2] = [blocks[name] for name in names]
        end = 2 if names[:1] == ["context"] else 0
        return RenderedPrompt(
            self.name, system, shared="".join(pieces[:end]), request="".join(pieces[end:])
        )


class PromptSet:
    """The prompts a judge uses: ours, with `replacements` in the place of some.

    Raises:
        ConfigurationError: A replacement cannot be read, has an unknown name, or lacks what it
            needs.
    """

    def __init__(self, replacements: PromptSource | None = None) -> None:
        self._prompts = dict(_own_prompts())
        for name, raw, source in _read(replacements or {}):
            self._prompts[name] = Prompt.parse(name, raw, source)

    @property
    def versions(self) -> dict[str, str]:
        """The version of each prompt in use."""
        return {name: prompt.version for name, prompt in self._prompts.items()}

    def render(self, name: str, **blocks: str) -> RenderedPrompt:
        """The prompt `name` with its placeholders filled with delimited text."""
        return self._prompts[name].render(self._prompts["system"].text, blocks)


@cache
def _own_prompts() -> Mapping[str, Prompt]:
    folder = files("ragaliq.judges") / "prompts"
    return {
        name: Prompt.parse(name, (folder / f"{name}.md").read_text("utf-8"), f"ragaliq's {name}.md")
        for name in PLACEHOLDERS
    }


def _read(replacements: PromptSource) -> Iterator[tuple[str, str, str]]:
    if replacements == "v1":
        folder = files("ragaliq.judges") / "prompts" / "v1"
        for file in folder.iterdir():
            yield (
                file.name.removesuffix(".md"),
                file.read_text("utf-8"),
                f"ragaliq's v1/{file.name}",
            )
        return
    if isinstance(replacements, Path):
        for path in _prompt_files(replacements):
            yield path.stem, _text_of(path), str(path)
        return
    if not isinstance(replacements, Mapping):
        raise ConfigurationError(
            "prompts= takes a mapping of prompt names to texts or pathlib.Path files, a "
            f"pathlib.Path to a folder, or 'v1'; got {type(replacements).__name__}"
        )
    for name, value in replacements.items():
        if isinstance(value, Path):
            yield name, _text_of(value), str(value)
        elif isinstance(value, str):
            yield name, value, "given as text"
        else:
            raise ConfigurationError(
                f"prompt {name!r} must be text or a pathlib.Path, got {type(value).__name__}"
            )


def _prompt_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.md"))
    if not found:
        raise ConfigurationError(f"the prompts folder {path} holds no .md file")
    return found


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the prompt file {path}: {error}") from error


def _check_name(name: str, source: str) -> None:
    if name not in PLACEHOLDERS:
        raise ConfigurationError(
            f"there is no prompt named {name!r} ({source}); there are {', '.join(PLACEHOLDERS)}"
        )


def _listed(names: set[str] | frozenset[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in sorted(names))


# --- Delimiters -------------------------------------------------------------------------------

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

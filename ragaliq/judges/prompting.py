"""Prompts as replaceable text files, and safe insertion of texts.

A text of the application is inserted between two tags: JSON, code and markup reach the judge as
they are, without characters that no reader sees. As with a Markdown fence, the tag adapts: if the
text contains anything that looks like the tag (`</answer>`, `</ ANSWER >`, full-width letters,
zero-width characters in between), the tag gets a number that the text does not contain
(`<answer-493817>`). The number depends only on the text, so equal contexts give equal prompts,
which a provider can cache.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

from ragaliq.core.printable import encodable, visible
from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import digest_of

PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "system": frozenset(),
    "extract_statements": frozenset({"question", "answer"}),
    "verify_claims": frozenset({"context", "claims"}),
    "grade_statements": frozenset({"question", "answer", "context"}),
    "relevance": frozenset({"question", "answer"}),
    "context_relevance": frozenset({"question", "chunk"}),
    "rubric": frozenset({"question", "answer", "rubric"}),
    "reply_form": frozenset({"form"}),
    "reply_again": frozenset({"fault"}),
}
"""The prompts there are, and the placeholders each of them must hold."""

PromptSource = Mapping[str, str | Path] | Path | Literal["v1"]
"""What to use instead of ours: name to text or file, a folder of `<name>.md`, one such file, or our
version 1 (`v1`), for those whose figures were made with it."""

_FOLDER = files("ragaliq.judges") / "prompts"
_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_FRONT_MATTER = re.compile(r"---[ \t]*\n.*?\n?---[ \t]*(?:\n|\Z)", re.DOTALL)


class Asked(NamedTuple):
    """Values of a prompt's placeholders; empty if the prompt lacks one."""

    question: str = ""
    answer: str = ""
    chunk: str = ""
    context: Sequence[str] = ()
    claims: Sequence[str] = ()
    rubric: str = ""


_NOTHING = Asked()


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt with everything filled in.

    Attributes:
        name: Which prompt it is.
        system: The system prompt.
        shared: The beginning of the request, up to the end of the context: the same text for every
            call over one context. Empty where something else comes before the context.
        request: The rest of the request.
        asked: What was filled in.
    """

    name: str
    system: str
    shared: str
    request: str
    asked: Asked = _NOTHING

    @property
    def text(self) -> str:
        """The whole request."""
        return self.shared + self.request


class PromptSet:
    """The prompts a judge uses: ours, with `replacements` in the place of some.

    Raises:
        ConfigurationError: A replacement cannot be read, has an unknown name, is empty, or lacks a
            placeholder.

    Attributes:
        texts: The text of each prompt in use, without its front matter.
    """

    def __init__(self, replacements: PromptSource | None = None) -> None:
        self.texts = dict(_OWN_PROMPTS)
        for name, raw, source in _read(replacements or {}):
            self.texts[name] = _parse(name, raw, source)

    def render(self, name: str, **blocks: str) -> RenderedPrompt:
        """The prompt `name` with its placeholders filled with delimited text."""
        # In one pass: what the blocks hold is never looked at again.
        pieces = _PLACEHOLDER.split(self.texts[name])
        names = pieces[1::2]
        pieces[1::2] = [blocks[name] for name in names]
        end = 2 if names[:1] == ["context"] else 0
        system = self.texts["system"]
        return RenderedPrompt(name, system, "".join(pieces[:end]), "".join(pieces[end:]))


def _read(replacements: PromptSource) -> Iterator[tuple[str, str, str]]:
    """Name, text and source of each prompt."""
    if replacements == "v1":
        own = (_FOLDER / "v1").iterdir()
        replacements = {file.name.removesuffix(".md"): file.read_text("utf-8") for file in own}
    elif isinstance(replacements, Path):
        found = sorted(replacements.glob("*.md")) if replacements.is_dir() else [replacements]
        if not found:
            raise ConfigurationError(f"the prompts folder {replacements} holds no .md file")
        replacements = {path.stem: path for path in found}
    elif not isinstance(replacements, Mapping):
        raise ConfigurationError(
            "prompts= takes a mapping of prompt names to texts or pathlib.Path files, a "
            f"pathlib.Path to a folder, or 'v1'; got {type(replacements).__name__}"
        )
    for name, value in replacements.items():
        if isinstance(value, str):
            yield name, value, "given as text"
            continue
        try:
            yield name, value.read_text("utf-8"), str(value)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"cannot read the prompt file {value}: {error}") from error


def _parse(name: str, raw: str, source: str) -> str:
    """A prompt's text, checked, without its front matter, which is for people."""
    if name not in PLACEHOLDERS:
        raise ConfigurationError(
            f"no prompt is named {name!r} ({source}); the names are {', '.join(PLACEHOLDERS)}"
        )
    raw = raw.removeprefix("\ufeff").replace("\r\n", "\n")
    front = _FRONT_MATTER.match(raw)
    text = (raw[front.end() :] if front else raw).strip()
    if not text:
        raise ConfigurationError(f"prompt {name!r} ({source}) is empty")
    expected, found = PLACEHOLDERS[name], set(_PLACEHOLDER.findall(text))
    faults = [f"unknown placeholder {_listed(found - expected)}"] if found - expected else []
    if expected - found:
        faults.append(f"missing placeholder {_listed(expected - found)}")
    if faults:
        takes = f"it takes {_listed(expected)}" if expected else "it takes no placeholders"
        raise ConfigurationError(f"prompt {name!r} ({source}): {' and '.join(faults)}; {takes}")
    return text


def _listed(names: set[str] | frozenset[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in sorted(names))


# Read with this module: a judge may be made on an event loop, which reading files would block.
_OWN_PROMPTS = {
    name: _parse(name, (_FOLDER / f"{name}.md").read_text("utf-8"), "ours") for name in PLACEHOLDERS
}


# --- Delimiters -------------------------------------------------------------------------------

# Characters a reader may take for "<", besides those that NFKD turns into it.
_SIGNS = str.maketrans(
    dict.fromkeys(
        "\u00ab\u02c2\u1433\u1438\u16b2\u2039\u226a\u227a\u22d6\u2329\u2770\u276c\u276e\u27e8\u27ea"
        "\u29fc\u2a9d\u3008\u300a\U0001d236",
        "<",
    )
)
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]+")


def delimit(tag: str, text: str) -> str:
    """`text` between an opening and a closing `tag`, each on a line of its own."""
    text = visible(encodable(text))
    name = tag + _free_suffix((tag,), (text,))
    return f"<{name}>\n{text}\n</{name}>"


def delimit_list(tag: str, item_tag: str, ids: Iterable[object], texts: Sequence[str]) -> str:
    """Every text between tags that carry its id, and all of them between two outer tags.

    The ids are ours, never the application's.
    """
    texts = [visible(encodable(text)) for text in texts]
    suffix = _free_suffix((tag, item_tag), texts)
    outer, inner = tag + suffix, item_tag + suffix
    lines = [f"<{outer}>"]
    for item_id, text in zip(ids, texts, strict=True):
        lines.append(f'<{inner} id="{item_id}">\n{text}\n</{inner}>')
    lines.append(f"</{outer}>")
    return "\n".join(lines)


def _free_suffix(tags: Sequence[str], texts: Iterable[str]) -> str:
    """Suffix of the tags: empty, or a `-number` if a text contains anything like a tag."""
    whole = "\n".join(texts)
    # What is left for a reader who overlooks case, width and spaces.
    seen = unicodedata.normalize("NFKD", whole.translate(_SIGNS)).casefold()
    seen = _BLANK.sub("", seen)
    # Any character outside ASCII may look like a letter or be invisible: tables of these are never
    # complete, and a false alarm only adds a number to a tag.
    if not re.search(rf"</*(?:{'|'.join(tags)}|[a-z/]{{0,12}}[^\x00-\x7f])", seen):
        return ""
    # A hash of the texts.
    number = 100_000 + int(digest_of(whole), 16) % 900_000
    # With six digits an author can try until a text holds its own number, apart or disguised.
    taken = set(re.findall(r"(?=([0-9]{6}))", re.sub(r"[^\x00-\x7f]+", "", seen)))
    while str(number) in taken:
        number += 1
    return f"-{number}"


# --- Control tokens of chat templates ---------------------------------------------------------

_JOINER = "\u2060"  # WORD JOINER: no width, no space, no line break
_OPENING = re.compile(
    # ChatML, Llama 3 and later, Phi, GLM, Command, gpt-oss; Gemma 4 has only one of the bars
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
    """Break up all control tokens of chat templates in a text."""
    return _OPENING.sub(rf"\g<0>{_JOINER}", text)


def restore(text: str) -> str:
    """Undo `defuse` in a reply that quotes the text."""
    return _DEFUSED.sub("", text)

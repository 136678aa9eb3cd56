"""Detection of answers that decline, in the most common languages.

A sentence declines by its structure, not by a list of wordings: a negation, with a noun for the
documents or their content and a verb of saying, or with a first person and a verb of knowing or
finding. The rest must be small words or one short topic. So "I do not know the price." declines,
and "I do not know of any danger." does not. What an empty search shows ("No results.") declines
where no question or statement goes before it. In doubt an answer does not decline and the judge
decides, since a refusal is accepted without a judge. The words of each language are in
`declines.json`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Literal

from ragaliq.judges.language.characters import readable
from ragaliq.judges.language.sentences import split_sentences
from ragaliq.judges.language.vocabulary import KnownWord, vocabularies_with

NAMES_OF_CONTEXT = (
    r"(?:provided |given |retrieved |available |supplied |above |current )*(?:context|documents?|"
    r"passages?|texts?|sources?|excerpts?|snippets?|search results|articles?|information|"
    r"knowledge base)(?: (?:provided|given|available|above|i have))?"
)
"""What a model calls the texts it was given."""

SentenceKind = Literal["statement", "question", "refusal", "courtesy", "reply"]

YES_OR_NO = frozenset(
    "yes no yeah yep nope ja nein oui non sí si sì no sim não nee tak nie да нет نعم لا".split()
)
_NOT = frozenset("not nicht niet pas".split())  # "Of course not."

_LONGEST = 400  # characters; no sentence that only declines is longer
_LONGEST_REFUSAL = 1_200  # characters; no answer that only declines is longer
_MOST_TOPIC = 10  # words of what a sentence that declines is about
_MOST_UNSPACED = 20  # the same in characters, in scripts without blanks
_MOST_OFFERED = 3  # words of what an offer of help is about
_AND = frozenset("and und et y e en i и ve".split())
_PURPOSE = frozenset("to um pour para per om aby".split())  # "To reset the router:"
_LEAST_WORDS = 4  # from which a line says something
_ABOUT = frozenset("about regarding on with zu zum über sur sobre su over hakkında".split())
_PARTS = re.compile(r"[,;:=()\[\]–—…，、；：。]|\.(?=\s|$)|[!?！？।؟](?=\s|$)| - ")
# Classes of words that belong to advice and courtesies, not to a decline.
_AROUND = frozenset({"advise", "advice", "polite", "lead", "lead_end", "disclaimer", "disclaiming"})
_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"[^\W\d_]")
_ASKS = re.compile(r"[?？؟;՞]\s*[\"'”’»)\]*_」』]*\s*$")
# They assert: "It opens at nine, doesn't it?", "Isn't it free?", "Why pay when it is free?",
# "Is the pass, which is free, enough?"
_ASSERTS_BY_ASKING = re.compile(
    r"[,–-]\s*(?:right|correct|okay|ok|no|yes|eh|or not|don't you think|wouldn't you say|(?:is|"
    r"are|was|were|do|does|did|has|have|had|can|could|will|would|should|must)(?:n't| not)? (?:it|"
    r"they|he|she|we|you|i|there|that|this)|(?:is|are|was|were|do|does|did) (?:it|they|he|she|we|"
    r"you|i|there) not|oder|nicht wahr|stimmt's|n'est-ce pas|non|pas vrai|verdad|no es así|vero|"
    r"giusto|não é|certo|toch|nietwaar|prawda|не так ли|правда)\s*[?？]\W*$"
    r"|(?:吧|对吧|對吧|对吗|對嗎|ですよね|よね|지요|죠)\s*[?？]\W*$"
    r"|^\W*(?:\w+n't|n'est|¿no|non è|ist es nicht|what if not)\b"
    r"|^\W*why\b.*,\s*(?:when|since|if|because|as)\b"
    r"|^\W*why (?!(?:not|is|are|was|were|do|does|did|has|have|had|can|could|will|would|shall|"
    r"should|must|may|the|my|your|this|that|it)\b)\w+ .*\b(?:when|since|if|because)\b"
    r"|\w, (?:which|who|whose|where) [^,?]+, ",
    re.IGNORECASE,
)
_ADDRESSES = re.compile(
    r"\b(?:you|your|i|me|sie|ihr|ihnen|ihre|du|dir|ich|vous|votre|tu|je|usted|su|te|puedo|lei|ti|"
    r"posso|você|seu|u|uw|je|ik|pan|pani|mogę|вы|вам|я|您|你)\b|[您你]",
    re.IGNORECASE,
)
_GREEK = re.compile("[\u0370-\u03ff]")
# Elements set their texts apart: "<answer>I do not know</answer><dose>40 mg</dose>".
_ELEMENT = re.compile(r"</?(?!(?:a|b|code|em|i|mark|small|span|strong|u)\b)[a-zA-Z][^<>]{0,200}>")
_MARKUP = re.compile(r"[*`#>\"“”«»]+|\[\d{1,3}\]")
_UNDERSCORES = re.compile(r"\b_+|_+\b")  # not those of NOT_ENOUGH_INFO
_APOSTROPHES = str.maketrans("’`´", "'''")
_WRITTEN_OUT = (
    (re.compile(r"\bcan'?not\b|\bcan't\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"'d\b"), " would"),
    (re.compile(r"\b(it|that|there|here)'s\b"), r"\1 is"),
)


def is_refusal(text: str, declines: Sequence[str] = ()) -> bool:
    """True if a whole answer declines to answer.

    True for "I don't know.", "Sorry, the context does not say when.", also with advice or an offer
    of help around it. False where anything in it may assert something, and for texts of more than
    1,200 characters. Covers English, German, French, Spanish, Italian, Portuguese, Dutch, Polish,
    Turkish, Russian, Chinese, Japanese, Korean, Arabic and Hindi.

    Args:
        text: The answer.
        declines: The application's own ways to decline: see `ScoringPolicy.declines`.
    """
    if is_own_decline(text, declines):
        return True
    if len(text) > _LONGEST_REFUSAL:
        return False
    sentences = [text[start:end] for start, end in split_sentences(text)]
    kinds = set[SentenceKind]()
    for sentence in sentences:
        kind = "refusal" if is_own_decline(sentence, declines) else sentence_kind(sentence)
        if "question" not in kinds and _is_empty_result(sentence):
            kind = "refusal"
        kinds.add(kind)
        if kind == "reply":
            return False
        if kind == "statement":
            said = normalize(sentence)
            advises = _in_any(said, "advise", _advises)
            if not (advises or _in_any(said, "only", _tells_the_subject)):
                return False
    return "refusal" in kinds


def is_own_decline(text: str, declines: Sequence[str]) -> bool:
    """True if a text matches one of the application's `declines`, ignoring case."""
    if not declines:
        return False
    said = " ".join(readable(text).split())
    return any(
        re.fullmatch(decline[1:-1], said, re.IGNORECASE) is not None
        if len(decline) > 2 and decline[0] == decline[-1] == "/"
        else _bare(decline) == _bare(said)
        for decline in declines
    )


def _bare(text: str) -> str:
    return " ".join(_MARKUP.sub(" ", text).split()).casefold().rstrip(".!… ")


def sentence_kind(sentence: str) -> SentenceKind:
    """Kind of a sentence.

    A `refusal` declines to answer and says nothing else; a `question` asserts nothing as "...,
    isn't it?" does; a `courtesy` greets, thanks, apologises or offers help, and says nothing else;
    a `reply` is one with a yes or a no. Anything else is a `statement`.
    """
    if _asks(sentence):
        return "question"
    if len(sentence) <= _LONGEST:
        said = normalize(sentence)
        if _in_any(said, "negation", _declines):
            return "refusal"
        polite = ("courtesy", "polite", "pronoun")
        if not _DIGIT.search(said) and _in_any(
            said, "courtesy", _is_polite, made_of=polite, spare=_MOST_OFFERED + 1
        ):
            return "reply" if _in_any(said, "courtesy", _replies) else "courtesy"
    return "statement"


def _is_empty_result(sentence: str) -> bool:
    """True if a sentence is what an empty search shows: "Not found.", "No results."."""
    if len(sentence) > _LONGEST:
        return False
    return _in_any(normalize(sentence), "negation", _finds_nothing)


def is_disclaimer(sentence: str) -> bool:
    """True if a sentence only says that a machine wrote the text, or what it does not replace."""
    if len(sentence) > _LONGEST or _DIGIT.search(sentence):
        return False
    made_of = ("disclaimer", "disclaiming")
    return _in_any(normalize(sentence), "disclaimer", _disclaims, made_of=made_of)


def is_lead_in(sentence: str) -> bool:
    """True if a sentence with a colon at its end only introduces what follows.

    It is short, refers to what follows ("the following"), or is incomplete without it ("The steps
    are:"). "The fee is 12 euros:" asserts something itself.
    """
    said = normalize(sentence)
    words = said.rstrip(": ：").split()
    if len(words) < _LEAST_WORDS or (words[0] in _PURPOSE and "," not in said):
        return True
    if _in_any(said, "lead", lambda _: True) or sentence_kind(sentence) in ("courtesy", "refusal"):
        return True
    return _in_any(words[-1], "lead_end", lambda _: True)


@lru_cache(maxsize=8)  # a sentence is asked about in several ways, one after the other
def normalize(sentence: str) -> str:
    """Normalise a sentence for the vocabularies: lower case, no markup, no contractions."""
    said = readable(sentence[: _LONGEST + 1])
    if "<" in said:
        said = _ELEMENT.sub(" ; ", said)
    said = _MARKUP.sub(" ", said).lower().translate(_APOSTROPHES)
    if "_" in said:
        said = _UNDERSCORES.sub(" ", said)
    if "'" in said or "cannot" in said:
        for pattern, replacement in _WRITTEN_OUT:
            said = pattern.sub(replacement, said)
    return " ".join(said.split())


# Questions.


def _asks(sentence: str) -> bool:
    asks = _ASKS.search(sentence[-20:])
    if not asks or (asks.group()[0] == ";" and not _GREEK.search(sentence)):
        return False
    if any(map(_ASSERTS_BY_ASKING.search, (sentence[:_LONGEST], sentence[-40:]))):
        return False
    if _DIGIT.search(sentence) and not _ADDRESSES.search(sentence):
        return False  # "Who was fined 3 million?" takes it for granted that somebody was
    # "Did you know that ...?" takes for true what follows.
    return not vocabularies_with(normalize(sentence).replace(",", ""), "asserting")


# Declines, courtesies and advice.


def _in_any(
    said: str,
    needed: str,
    test: Callable[[Sequence[Sequence[KnownWord]]], bool],
    *,
    made_of: tuple[str, ...] = (),
    spare: int = 0,
) -> bool:
    """True if a sentence passes a test in one of the languages.

    Args:
        said: The normalised sentence.
        needed: The class of a word that the sentence must have.
        test: Gets the tokens of the parts between commas.
        made_of: Classes that all words but `spare` must be in.
        spare: Number of words that need not be in these classes.
    """
    parts: list[str] = []
    for vocabulary in vocabularies_with(said, needed, made_of=made_of, spare=spare):
        parts = parts or [part for part in _PARTS.split(said) if _LETTERS.search(part)]
        if test([vocabulary.tokens(part) for part in parts]):
            return True
    return False


def _count(tokens: Iterable[KnownWord], *classes: str) -> int:
    return sum(not token.classes.isdisjoint(classes) for token in tokens)


def _topic(tokens: Iterable[KnownWord]) -> list[KnownWord]:
    """Words outside all classes: the sentence's topic."""
    return [token for token in tokens if _is_topic(token)]


def _is_topic(token: KnownWord) -> bool:
    return token.classes <= _AROUND


def _declines(parts: Sequence[Sequence[KnownWord]]) -> bool:
    """True if each part of a sentence declines, introduces that, or names what is unknown."""
    declined = False
    for at, part in enumerate(parts):
        if _has_frame(part):
            if not _is_bare(part):
                return False
            declined = True
        elif _topic(part):
            first = part[0].classes
            leads_in = not declined and "topic" in first
            # "I do not know, whether ...", not "the price, which is ..." or "nothing, what ...".
            goes_on = (
                declined and "indirect" in first and not _count(parts[at - 1][-1:], "anything")
            )
            if not (leads_in or goes_on) or not _is_short(part) or _asserts(part):
                return False
        elif _asserts(part):
            return False
    return declined


def _has_frame(part: Sequence[KnownWord]) -> bool:
    """True if a part denies that the documents say something, or that the speaker knows."""
    has = frozenset[str]().union(*(token.classes for token in part))
    if "negation" not in has:
        return False
    is_alone = not _topic(part)
    learns = has & {"information", "anything"}
    if "document" in has:
        # "The handbook does not cover accidental damage." is an answer; "... this." is none.
        refers = is_alone and part[0].classes & {"pronoun", "relative"}
        holds = has & {"hold", "get", "exists"}
        if has & {"say", "know", "information"} or (holds and ("context" in has or refers)):
            return True
    speaks = "self" in has or "we" in has
    gets = "get" in has or ("give" in has and "self" in has)
    if speaks and ("know" in has or (learns and gets) or _has_not_found(part, has)):
        return True
    if "information" not in has:
        return is_alone and "open" in has
    denied = next(at for at, token in enumerate(part) if "negation" in token.classes)
    is_subject = _count(part[:denied], "information") > 0
    if is_alone:  # "No idea", "That information is not available", not "Its answer: no"
        is_missing = is_subject and "determiner" in part[0].classes and "obtainable" in has
        return is_missing or _count(part[denied:], "information") > 0
    # "That information is not provided to children."
    limits = is_subject and _count(part[denied:], "obtainable") > 0 and _topic(part[denied:])
    return not limits and bool(has & {"exists", "get", "say", "hold"})


def _has_not_found(part: Sequence[KnownWord], has: frozenset[str]) -> bool:
    """True if the speaker denies having found "it", or one thing that is only named.

    Args:
        part: A part with a negation and a first person.
        has: All classes of its words.
    """
    if _topic(part):
        return "find" in has and "we" not in has and _names_a_thing(part, in_text="document" in has)
    if "object" not in has:
        return False
    if "document" in has:  # "I do not see it in the handbook."
        return bool(has & {"find", "get"})
    return "find" in has and not any(map(_is_judgement, part))


def _is_judgement(token: KnownWord) -> bool:
    """True for words such as "clear" in "I do not find it clear."."""
    return bool(token.classes & {"say", "know", "hold"}) and not token.classes & {"find", "get"}


def _names_a_thing(part: Sequence[KnownWord], *, in_text: bool) -> bool:
    """True if a part's topic is one noun phrase: "the price of gold".

    Each noun is a single word, unless it was looked for in a text: "I did not find the drug
    harmful." asserts.
    """
    topics = [at for at, token in enumerate(part) if _is_topic(token)]
    first, last = topics[0], topics[-1]
    if not first or "article" not in part[first - 1].classes:
        return False
    if first > 1 and "topic" in part[first - 2].classes:
        return False  # "in the drawer"
    if any("object" in token.classes and "article" not in token.classes for token in part):
        return False  # "I could not find it under the bed."
    for before, token in itertools.pairwise(part[first - 1 : last + 1]):
        joins = "of" in token.classes or token.text in _AND
        of_the = "of" in before.classes and "article" in token.classes
        names = _is_topic(token) and (in_text or not _is_topic(before))
        if not (joins or of_the or names) or _DIGIT.search(token.text):
            return False
    return True


def _is_bare(part: Sequence[KnownWord]) -> bool:
    """True if a declining part names at most a topic, and asserts nothing about it."""
    if not _is_short(part) or _asserts(part):
        return False
    for denied, token, after in zip(part, part[1:], part[2:], strict=False):
        if "negation" in denied.classes and "document" in token.classes and _is_topic(after):
            return False  # "no documents needed"
    we_speak = _count(part, "we") > 0 and not _count(part, "self", "document")
    for before, token in itertools.pairwise(part):
        if "any" in before.classes and "document" in token.classes:
            return False
        if not _is_topic(token) or _is_unspaced(token):
            continue
        # "no danger", "any harm", "data centers"; and "we can not help customers".
        barred = {"negation", "any", "information", *(["know"] if we_speak else [])}
        allowed = {"say", "hold", "get"} if we_speak else {"say", "hold", "get", "know"}
        if before.classes & barred and not before.classes & allowed:
            return False
    return True


def _asserts(part: Sequence[KnownWord]) -> bool:
    """True if a clause begins in a part of a sentence: after "that", "because", "and"."""
    if len(part) > 1 and part[-1].text in YES_OR_NO:
        return True  # "The documents do not say no."
    asked = False
    seen = met = False  # a verb of knowing or saying, and a topic after it
    for at, token in enumerate(part):
        if "relative" in token.classes and 0 < at < len(part) - 1 and not _is_object(part, at):
            return True
        leads = at == 0 and _has_frame(part)  # ", but I do not know"
        joins = token.text in _AND and _joins_a_word(part, at)
        if "stop" in token.classes and not (leads or joins):
            return True
        asked = asked or "asking" in token.classes
        if seen and met and not asked and "verb" in token.classes:
            return True
        seen = seen or not token.classes.isdisjoint(("know", "say"))
        met = met or (seen and ("pronoun" in token.classes or _is_topic(token)))
    return False


def _is_object(part: Sequence[KnownWord], at: int) -> bool:
    """True if a "that" is a pronoun with a place after it: "find that in the documents"."""
    rest = part[at + 1 :]
    return (
        "object" in part[at].classes
        and "topic" in rest[0].classes
        and "asking" not in rest[0].classes
        and _count(rest, "document") > 0
        and not _topic(rest)
        and not _count(rest, "verb")
    )


def _joins_a_word(part: Sequence[KnownWord], at: int) -> bool:
    """True if an "and" only adds one more word to the topic: "prices and dates"."""
    rest = list(itertools.takewhile(lambda token: "topic" not in token.classes, part[at + 1 :]))
    return bool(_topic(part[:at])) and len(rest) <= 2 and len(_topic(rest)) <= 1


def _is_short(part: Sequence[KnownWord]) -> bool:
    topic = _topic(part)
    unspaced = [token for token in topic if _is_unspaced(token)]
    return (
        len(topic) - len(unspaced) <= _MOST_TOPIC
        and sum(len(token.text) for token in unspaced) <= _MOST_UNSPACED
    )


def _is_letter(token: KnownWord) -> bool:
    return len(token.text) == 1


def _is_unspaced(token: KnownWord) -> bool:
    return token.text[:1] >= "\u1100"


def _is_polite(parts: Sequence[Sequence[KnownWord]]) -> bool:
    """True if a sentence consists of greetings, thanks, offers and at most a short topic."""
    tokens = [token for part in parts for token in part]
    if not _count(tokens, "courtesy"):
        return False
    offered = 0
    for part in parts:
        about = False
        for token in part:
            about = about or token.text in _ABOUT
            if token.classes & {"courtesy", "polite", "pronoun"}:
                continue
            offered += 1
            if not about or token.classes & {"stop", "relative"} or offered > _MOST_OFFERED:
                return False
    return True


def _replies(parts: Sequence[Sequence[KnownWord]]) -> bool:
    """True if a courtesy says yes or no: "Thanks for asking, yes.", "Of course not."."""
    tokens = [token for part in parts for token in part]
    return any(token.text in YES_OR_NO | _NOT for token in tokens)


def _finds_nothing(parts: Sequence[Sequence[KnownWord]]) -> bool:
    """True if a sentence only denies that something was found, or that there are results."""
    empty = False
    for part in parts:
        if "negation" in part[0].classes:
            known = {"negation", "find"}
            if _count(part, "result"):
                known |= {"result", "fill", "exists"}
            empty = empty or _count(part, "find", "result") > 0
        else:
            known = {"fill"}
        if not all(token.classes & known for token in part):
            return False
    return empty


def _advises(parts: Sequence[Sequence[KnownWord]]) -> bool:
    """True if a sentence only says whom to ask, such as customer support."""
    tokens = [token for part in parts for token in part]
    known = {"advise", "advice", "polite", "courtesy", "document", "information", "fill", "pronoun"}
    return (
        _count(tokens, "advise") > 0
        and _count(tokens, "advice") > 0
        and all(token.classes & known for token in tokens)
    )


def _disclaims(parts: Sequence[Sequence[KnownWord]]) -> bool:
    known = {"disclaimer", "disclaiming"}
    return all(word.classes & known or _is_letter(word) for part in parts for word in part)


def _tells_the_subject(parts: Sequence[Sequence[KnownWord]]) -> bool:
    """True if a sentence only says what the documents are about."""
    tokens = [token for part in parts for token in part]
    says = _count(tokens, "document") and _count(tokens, "only")
    return bool(says) and all(_is_short(part) and not _asserts(part) for part in parts)

"""Signs such as %, € and p.m. as words, so that they compare with the words."""

from __future__ import annotations

import re

__all__ = ["join_half_of_day", "spell_symbols"]

_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee"}
_AMOUNT = re.compile(
    r"([$€£¥₹])\s?(\d[\d.,]*(?:\s?(?:k|mn?|bn?|thousand|million|billion|trillion)\b)?)",
    re.IGNORECASE,
)
_WORDS = {"%": " percent ", "°C": " celsius ", "°F": " fahrenheit "} | {
    sign: f" {word} " for sign, word in _CURRENCIES.items()
}
_ASCII_WORDS = {sign: word for sign, word in _WORDS.items() if sign.isascii()}
_HALF_OF_DAY = re.compile(r"(\d)\s?([ap])\.?\s?m\b\.?", re.IGNORECASE)


def spell_symbols(text: str) -> str:
    """The text with currency signs after their amounts, and signs such as % as words."""
    signs = _ASCII_WORDS if text.isascii() else _WORDS
    for sign in _CURRENCIES:
        if sign in text:
            text = _AMOUNT.sub(_amount, text)
            break
    for sign, word in signs.items():
        if sign in text:
            text = text.replace(sign, word)
    return text


def join_half_of_day(text: str) -> str:
    """The text with "3 p.m." as "3 pm"."""
    return _HALF_OF_DAY.sub(r"\1 \2m", text)


def _amount(match: re.Match[str]) -> str:
    return f"{match[2]} {_CURRENCIES[match[1]]} "

"""Tells a judge that declines from one whose reply is useless for another reason.

Asked only where a reply holds no verdict: "No - the answer says 'I cannot tell'" is a verdict.
"""

from __future__ import annotations

import re

from ragaliq.judges.language.phrases import REFUSALS
from ragaliq.judges.language.refusals import plain

__all__ = ["declines_to_judge", "is_unwilling"]

_LONGEST = 4_000  # characters; a refusal does not come later
_MOST_SENTENCES = 25
_PAGE = re.compile(r"\s*+<(?:!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?\n。！？]+")

# On text made plain by `refusals.plain`: lower case, "can not", "i am".
_JUDGES = re.compile(
    r"\bi (?:really |simply )?(?:can|could|will|shall) not\b|\bi apologi[sz]e\b|"
    r"\b(?:i|we) (?:am|are) (?:\w{1,20} )?(?:unable|not able|not allowed|not permitted)\b|"
    r"\b(?:insufficient|not enough|inadequate) (?:information|context|evidence|data)\b|"
    r"\b(?:can not|could not|unable to|impossible to) (?:be )?(?:determine|judge|assess|evaluate|"
    r"verif|rate|decide|comply|help|assist)|\bno verdicts?\b|\b(?:refuse|decline) to\b|"
    r"\bagainst (?:my|our|the) (?:\w{1,20} )?(?:policy|policies|guidelines|rules|principles)\b|"
    r"\bnot (?:contain|provide|have|include|offer|give) (?:enough|sufficient)\b|"
    r"\bas an ai\b|\bcontent policy\b|"
    r"\b(?:kann|können) (?:\w{1,20} ){0,8}?(?:nicht|keine) (?:\w{1,20} ){0,4}?(?:beurteil|bewert|"
    r"entscheid|einschätz|bestimm|überprüf|helf|beantwort)|\bmöchte (?:\w{1,20} ){0,3}?nicht\b|"
    r"\bje ne (?:peux|suis|souhaite|veux)\b|\bno (?:puedo|podemos|es posible)\b|"
    r"\bnon (?:posso|sono in grado|è possibile)\b|\bnão (?:posso|consigo|é possível)\b|"
    r"\b(?:ik kan|kan ik) (?:\w{1,20} ){0,6}?(?:niet|geen)\b|\bnie (?:mogę|jestem w stanie)\b|"
    r"\b\w{1,20}(?:amam|emem|amıyorum|emiyorum)\b|\bне (?:могу|можем|буду|имею права)\b|"
    r"(?:无法|無法|不能|不会)(?:对|對|为|為|就)?.{0,12}?(?:判断|判斷|评估|評估|评判|確定|确定|回答|提供|协助|協助|帮助|幫助|完成)|"
    r"(?:できません|できかねます|いたしかねます)|(?:할|드릴|판단할|평가할|도와드릴) 수 없|"
    r"لا (?:أستطيع|يمكنني|أقدر)|नहीं (?:कर|दे|बता) सकत"
)
_UNWILLING = re.compile(
    r"\w{1,8}\W{1,3}(?:(?:i am )?(?:sorry|afraid)\W{1,3}(?:but )?)?"
    r"(?:i|we) (?:can not|will not|refuse|decline|am not able|am unable|am not allowed)\b"
    r".{0,40}?\b(?:help|assist|comply|do (?:that|this|so)|fulfil|judge|evaluate|continue|discuss|"
    r"participate|provide|respond)"
)


def declines_to_judge(text: str) -> bool:
    """Whether a reply without verdicts declines, in any of the languages of `phrases`.

    Args:
        text: The reply; markup pages, such as the error of a proxy, decline nothing.
    """
    if _PAGE.match(text):
        return False
    sentences = _SENTENCE.findall(text[:_LONGEST])[:_MOST_SENTENCES]
    return any(map(_declines, map(plain, sentences)))


def is_unwilling(text: str) -> bool:
    """Whether a reply that begins with "no" means "No, I will not help with that"."""
    return _UNWILLING.match(plain(text)) is not None


def _declines(said: str) -> bool:
    return _JUDGES.search(said) is not None or any(pattern.search(said) for pattern in REFUSALS)

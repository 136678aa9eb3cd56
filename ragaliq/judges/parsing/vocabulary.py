"""How verdicts are worded, in the languages judges are most often asked in.

Words are exact; phrases are patterns, in which one space stands for any short gap. A language needs
only its common wordings: a verdict that is not recognised is asked for again, never guessed.
"""

from __future__ import annotations

__all__ = [
    "BECAUSE",
    "CONTRADICTED",
    "CROSSES",
    "NO",
    "NOT_ENOUGH_INFO",
    "SUPPORTED",
    "SUPPORTED_BY",
    "TICKS",
    "UNSETTLED",
    "YES",
]

TICKS = "[✅✔✓☑]\ufe0f?"
CROSSES = "[❌✗✘✖]\ufe0f?"

YES = (
    "yes yeah yep true correct ja oui sí si sì sim да так evet tak ano igen áno kyllä da vâng có "
    "ya ναι כן نعم हाँ हां はい ええ 是 是的 对 對 对的 對的 属实 屬實 예 네 wahr richtig zutreffend "
    "vrai vraie verdadero verdadera vero vera verdadeiro verdadeira doğru верно"
)
NO = (
    "no nope false incorrect nein non não nao нет ні hayır hayir nie ne nem nej nei nee nu ei "
    "không tidak όχι לא لا नहीं いいえ 否 不 不是 不对 不對 아니요 아니오 아뇨 falsch faux fausse "
    "falso falsa yanlış неверно unknown unclear undetermined unverifiable neutral baseless partial "
    "partially"
)
BECAUSE = (
    "because since as it its the this that these they he she there according based per chunk "
    "context weil denn es die der das car parce puisque le la il porque ya el perché poiché pois "
    "omdat want потому так поскольку ponieważ bo çünkü"
)

SUPPORTED_BY = (
    "by in from with through via but and at on directly explicitly fully clearly entirely von "
    "durch im par dans por en dal dai da pelo pela door"
)
"""What may follow "supported" where it is a verdict; "supported formats" is none."""

_SURELY = r"(?:(?:fully|directly|clearly|explicitly|strongly|well|completely|entirely) )?"
_HELD = (
    r"supported|entailed|grounded|attributable|verified|confirmed|faithful|substantiated|inferred|"
    r"inferable"
)
_FOUND = r"verifiable|stated|mentioned|found|covered|present|given|true|correct|implied"
_PARTLY = r"(?:only )?(?:partially|partly|mostly|largely|somewhat)"

SUPPORTED = (
    rf"{_SURELY}(?:{_HELD})",
    r"supports|entails|entailment",
    r"can be (?:\w+ )?(?:inferred|supported|verified|confirmed|deduced)",
    r"belegt|gestützt|unterstützt|bestätigt",
    r"soutenue?|étayée?|appuyée?|confirmée?",
    r"respaldad[oa]|soportad[oa]|apoyad[oa]|confirmad[oa]",
    r"supportat[oa]|sostenut[oa]|confermat[oa]|suportad[oa]|apoiad[oa]",
    r"ondersteund|bevestigd|potwierdzon[eay]|destekleniyor",
    r"подтвержден[оа]?|подтверждён|подтверждается",
    r"支持|有支持|得到支持|被支持",
    r"支持される|支持されている|サポートされている|지지됨|지원됨|뒷받침됨",
)
NOT_ENOUGH_INFO = (
    rf"(?:un|non )(?:{_HELD})",
    rf"(?:not|isn['’]?t|wasn['’]?t) (?:\w+ )?(?:{_HELD}|{_FOUND})",
    r"(?:does|do|did)(?: not|n['’]?t) (?:\w+ )?(?:support|entail|mention|state)",
    rf"can(?: not|not|['’]?t) be (?:\w+ )?(?:{_HELD}|determined|deduced)",
    r"(?:not enough|insufficient) (?:info|information|evidence|context)",
    r"no (?:\w+ )?(?:evidence|mention|information|support|basis)",
    r"neither supported nor contradicted",
    rf"{_PARTLY} (?:{_HELD}|{_FOUND}|accurate)|partial support",
    r"(?:nicht|kaum|teilweise) (?:belegt|gestützt|unterstützt|bestätigt|wahr|zutreffend)",
    r"nicht richtig",
    r"(?:non|pas) (?:soutenue?|étayée?|appuyée?|confirmée?|vraie?)",
    r"no (?:respaldad[oa]|soportad[oa]|apoyad[oa]|confirmad[oa])",
    r"non (?:supportat[oa]|sostenut[oa]|confermat[oa])",
    r"não (?:suportad[oa]|apoiad[oa]|confirmad[oa])",
    r"niet (?:ondersteund|bevestigd)|niepotwierdzon[eay]|desteklenmiyor",
    r"не (?:подтвержден[оа]?|подтверждён|подтверждается|верно)|недостаточно информации",
    r"不支持|未得到支持|没有支持|沒有支持|无法确定|無法確定|信息不足|資訊不足",
    r"支持されない|支持されていない|サポートされていない|情報不足|지지되지 않음|정보 부족",
)
CONTRADICTED = (
    r"(?:(?:directly|clearly|explicitly) )?(?:contradicted|refuted|disproved|disproven)",
    r"contradicts|contradiction|contradictory|refutes|conflicts",
    r"widersprochen|widerspruch|widerlegt|contredite?|réfutée?",
    r"contradicho|contradicción|refutad[oa]|contraddett[oa]|contraditóri[oa]|contradit[oa]",
    r"tegengesproken|weerlegd|sprzeczne|çelişiyor",
    r"противоречит|опровергнуто|опровергается",
    r"矛盾|相矛盾|反驳|反駁|被反驳|矛盾する|矛盾している|모순|모순됨",
)
# Said often and settling nothing: a claim that nobody contradicts may still have no support.
UNSETTLED = (
    r"(?:no|not|never|without) (?:\w+ )?(?:contradict|refut|conflict|disprove)\w{0,6}",
    r"yes and no|n/?a|maybe|possibly|perhaps|jein",
)

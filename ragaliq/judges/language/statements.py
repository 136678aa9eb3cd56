"""Statements in a user's message; its questions and suppositions are not evidence.

The rules are lexical and small, for the same languages as refusals. A statement mistaken for a
question leaves a claim unsupported, which is the visible kind of error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragaliq.judges.language.sentences import split_sentences

_QUESTION = re.compile(
    r"^\W*¿|[?？؟]\W*$"
    # "Refunds take 30 days, right"
    r"|,\s+(?:right|correct|yes|no|is(?:n['’]t)? it|don['’]t they|oder|nicht wahr|n['’]est-ce pas|"
    r"verdad|vero|né|certo|toch|prawda|верно|değil mi)\W*$",
    re.IGNORECASE,
)

# Questions without a question mark, which many users omit: by their first words, or by words that
# occur in questions only. "When I ordered, it was red" is a statement; in languages that omit the
# pronoun, the verb decides.
_OF_ONESELF = r"(?!\s+(?:io|noi|eu|nós|ho|abbiamo|ero|eravamo|sono|siamo|mi|\w+(?:ei|[aei]mos))\b)"
_OPENERS = {
    "en": r"(?:what|when|where|who|whose|which|why|how|is|are|was|were|do|does|did|can|could|will|"
    r"would|should|must|has|tell|explain|confirm|check)\b(?!\s+(?:I|we|my|our)\b)"
    r"|(?:is|are|was|were|do|did|can|could|will|would|should|must)\s+(?:I|we|my|our)\b",
    "de": r"(?:was|wann|wo|wer|warum|wieso|wie|welche\w?|ist|sind|hat|kann|können|darf|muss|soll|"
    r"wird|gibt)\b(?!\s+(?:ich|wir|mein\w*|unser\w*)\b)"
    r"|(?:kann|können|darf|dürfen|muss|müssen|soll|sollen)\s+(?:ich|wir|mein\w*|unser\w*)\b",
    "fr": r"(?:quand|où|comment|pourquoi|combien|quel\w*)\b(?!\s+(?:je|nous|mon|ma|mes)\b|\s+j['’])"
    r"|(?:est-ce|puis-je|peut-on|peux-tu|pouvez-vous|y a-t-il|dois-je|faut-il|dites-moi|dis-moi)\b",
    "es": r"(?:qué|cuándo|cómo|dónde|cuál\w*|quién\w*|cuánt\w+|por qué|puedo|podemos|puedes?|"
    r"pueden|podrían?|se puede|es posible|hay|dime|dígame|acept[aá]n|me (?:puede|podría)\w*)\b",
    "it": rf"(?:quando|dove|come|cosa|chi|perché|qual\w*|quant\w+)\b{_OF_ONESELF}"
    r"|(?:posso|possiamo|puoi|può|potete|potrei|potrebbe|si può|è possibile|ci sono|dimmi|"
    r"accettate|mi (?:puoi|può))\b|c['’]è\b",
    "pt": rf"(?:onde|como|o que|quem|por ?qu[eê]|porquê|quais)\b{_OF_ONESELF}"
    r"|(?:posso|podemos|podes?|podem|poderia\w*|é possível|será que|há|tem como|aceitam|diga)\b",
    "nl": r"(?:wat|wanneer|waar|wie|waarom|hoe\w*|welke?|is|zijn|kan|kunnen|mag|moet|heeft|"
    r"hebben)\b(?!\s+(?:ik|wij|we|mijn|ons|onze)\b)|(?:kan|kunnen|mag|mogen|moet|moeten)\s+(?:ik|wij|we)\b",
    "pl": r"czy\b|(?:kiedy|gdzie|jak|jaki\w*|jaka|jakie|co|kto|dlaczego|czemu|ile|któr\w+)\b"
    r"(?!\s+\w*(?:łem|łam|liśmy|łyśmy)\b)|(?:mogę|możemy|można|da się|powiedz\w*)\b",
    "ru": r"(?:когда|где|как\w*|что|кто|почему|зачем|сколько|котор\w+)\b"
    r"(?!\s+(?:я|мы|мо\w|наш\w?)\b)|(?:можно|могу|можем|скажи\w*|объясни\w*)\b",
    "ar": r"(?:هل|متى|أين|كيف|ماذا|لماذا|كم)\b|ما (?:هو|هي)\b",
}
_ASKING_WORDS = {
    "ru": r"\bли\b",
    "tr": r"\bm[ıiuü](?:y[ıiuü](?:m|z))?\b\W*$"
    r"|\b(?:ne zaman|nerede|nasıl|neden|niçin|hangi|kaç|ne kadar)\b",
    "hi": r"क्या|कब |कहाँ|कहां|कैसे|कौन|क्यों|कितन",
    "zh": r"[吗嗎呢]\W*$|什[么麼]|怎[么麼]|哪|多少|能否|是否|可不可以|能不能",
    "ja": r"か\W*$|教えて",
    "ko": r"(?:까|까요|나요|[은는인]가요)\W*$|알려\s?주",
}
_BEFORE = (
    r"\W*(?:(?:so|and|but|or|ok|okay|hi|hello|please|und|aber|oder|bitte|et|mais|ou|y|pero|hola|e|"
    r"ma|ciao|mas|olá|en|maar|i|a|ale|и|а|но)\b\W*)*"
)
_ASKS = re.compile(
    rf"{_BEFORE}(?:{'|'.join(_OPENERS.values())})|^.*?(?:{'|'.join(_ASKING_WORDS.values())})",
    re.IGNORECASE | re.DOTALL,
)
# Statements of users about themselves before a question: "I live in Norway, can I return it?"
_ASIDE = re.compile(
    r"\s*(?:I|my|we|our|ich|wir|mein\w*|unser\w*|je|j['’]\w+|nous|mon|ma|mes|notre|yo|mi|mis|"
    r"nosotros|io|mio|mia|noi|eu|meu|minha)\b[^?？]*?(?=[,;:–—]\s)",
    re.IGNORECASE,
)
# Tags that turn the whole sentence into a question: "I can return it within 60 days, right?"
_TAG = re.compile(
    r"\W*(?:\S+(?:\s+\S+)?$|(?:or|oder|ou|o|u|of|albo|или)\b"
    r"|is (?:that|this|it) (?:still |really )?(?:right|correct|true|so|ok|okay|possible|allowed)\b"
    r"|(?:stimmt|ist) das\b|c['’]est (?:bien|vrai))",
    re.IGNORECASE,
)

# Words for what a user supposes, has heard somewhere, or makes up as an example.
_SUPPOSES = {
    "en": r"\b(?:I|we)(?:\s+(?:had|have|was|were|am|are|always|just|only|really|also)){0,2}\s+"
    r"(?:think|thought|believed?|guess(?:ed)?|assum\w+|suppos\w+|suspect\w*|imagined?|hop(?:ed?|ing)|"
    r"wonder\w*|doubt\w*|heard|read(?=\s+(?:that|somewhere))|not sure|unsure)\b"
    r"|(?:\b(?:am|are|was|were|been)|['’](?:m|re|ve been)) told\b"
    r"|\b(?:told (?:me|us)|says|(?<!I )(?<!we )said|whether)\b|(?:\bnot|n['’]t|\bto) know\b"
    r"|\bif (?:I (?:remember|recall|understand|understood|am)|I['’]m|memory)\b"
    r"|\b(?:I['’]m|not|we['’]re) (?:not )?(?:sure|certain)\b|\b(?:maybe|perhaps|probably|possibly|"
    r"apparently|presumably|supposedly)\b|\bas far as I\b|"
    r"^\W*(?:let['’]?s |let us )?(?:if|suppose|say|imagine|assum(?:e|ing)|pretend)\b",
    "de": r"\b(?:ich|wir) (?:glaub\w*|denke?n?|dachten?|vermut\w+|nehme?n? an|nahm\w* an|hoff\w+|"
    r"habe?n? gehört|habe?n? gelesen|bin (?:mir )?nicht sicher)\b"
    r"|\b(?:ob|wei(?:ß|ss) nicht|wissen nicht|sagte|meinte)\b"
    r"|\b(?:vielleicht|wahrscheinlich|vermutlich|angeblich|soweit ich)\b|^\W*(?:wenn|falls)\b",
    "fr": r"\b(?:je|nous) (?:crois|croyais|croyons|pens\w+|suppos\w+|imagin\w+|espèr\w+|dout\w+)\b"
    r"|\bj['’](?:imagin\w+|espèr\w+|ai (?:cru|entendu|lu))\b|\bje ne suis pas sûre?\b"
    r"|\b(?:ne sais pas|ne savons pas|savoir si|m['’]a dit|m['’]ont dit)\b"
    r"|\b(?:peut-être|probablement|sans doute|apparemment)\b|^\W*si\b",
    "es": r"\b(?:creo|creía|creíamos|creemos|pienso|pensaba|pensé|supongo|suponía|imagino|espero|"
    r"dudo|oí|escuché|he (?:oído|leído)|me (?:dijeron|parece))\b|\bno estoy segur[oa]\b"
    r"|\b(?:no sé|no sabemos|saber si|me dijo|dicen que|según)\b"
    r"|\b(?:quizás?|tal vez|probablemente|a lo mejor|al parecer)\b|^\W*si\b",
    "it": r"\b(?:credo|credevo|penso|pensavo|suppongo|supponevo|immagino|spero|dubito|mi (?:sembra|"
    r"hanno detto)|ho (?:sentito|letto))\b|\bnon sono sicur[oa]\b"
    r"|\b(?:non so|non sappiamo|sapere se|mi ha detto|dicono che)\b"
    r"|\b(?:forse|probabilmente|magari|a quanto pare)\b|^\W*se\b",
    "pt": r"\b(?:acho|achava|achei|creio|penso|pensava|pensei|suponho|imagino|espero|duvido|ouvi|"
    r"li que|me disseram)\b|\bnão tenho certeza\b|"
    r"\b(?:não sei|não sabemos|saber se|me disse|dizem que)\b|"
    r"\b(?:talvez|provavelmente|aparentemente)\b|^\W*se\b",
    "nl": r"\b(?:ik|wij|we) (?:denk\w*|dacht\w*|gelo\w+|vermoed\w*|neem aan|hoop\w*|heb gehoord|"
    r"heb gelezen)\b|\b(?:weet niet|weten of|zei|misschien|waarschijnlijk|"
    r"vermoedelijk|blijkbaar)\b",
    "pl": r"\b(?:myśl\w+|sądz\w+|przypuszcz\w+|zakład\w+|chyba|może|prawdopodobnie|podobno|"
    r"słyszał\w+|nie wie(?:m|my)|wiedzieć,? czy|powiedział\w*|wydaje mi się|nie jestem pew\w+)\b"
    r"|^\W*(?:jeśli|jeżeli|gdyby\w*)\b",
    "tr": r"\b(?:sanıyor\w*|sanmış\w*|sanırım|düşün\w+|galiba|belki|herhalde|muhtemelen|duydum|"
    r"emin değilim|bilmiyorum|bilmek ist\w+)\b|^\W*eğer\b",
    "ru": r"\b(?:думаю|думал\w?|считаю|считал\w?|полага\w+|кажется|наверн\w+|возможно|вероятно|"
    r"может быть|слышал\w?|не знаю|не знаем|узнать|сказал\w?|не уверен\w?|видимо)\b|^\W*если\b",
    "ar": r"(?:أعتقد|اعتقدت|أظن|ظننت|ربما|سمعت|لست متأكد|لا أعرف|لا أدري|أن أعرف|قال لي)"
    r"|^\W*(?:إذا|لو)\b",
    "hi": r"मुझे लगता|मुझे लगा|मैंने सोचा|मैंने सुना|शायद|पता नहीं|नहीं जानत|जानना चाह|^\W*अगर",
    "zh": r"我[们們]?(?:以[为為]|[觉覺]得|想是|猜|[听聽][说說])|可能|也[许許]|大概|"
    r"好像|不知道|想知道|不[确確]定|^\W*(?:如果|假如)",
    "ja": r"と思[いうっ]|かもしれ|でしょう|らしい|たぶん|多分|おそらく|知りたい|[わ分]かりません"
    r"|^\W*もし",
    "ko": r"[줄것] ?같|생각(?:해|했|합)|알았|아마|들었|모르|궁금|^\W*만약",
}
_SUPPOSED = re.compile("|".join(_SUPPOSES.values()), re.IGNORECASE)
# "I live in Norway and I think ..." states the first half.
_JOINT = re.compile(r"[,;]?\s+(?:and|but|und|aber|et|mais|y|pero|e|ma|mas|en|maar|и|но)\s*$")


def statements(text: str) -> Iterator[tuple[int, int]]:
    """Ranges of a user's message that state something, rather than ask or suppose."""
    for start, end in split_sentences(text):
        said = text[start:end]
        if _QUESTION.search(said) or _ASKS.match(said):
            aside = _ASIDE.match(said)
            if aside is None or _TAG.match(said, aside.end()):
                continue
            said = aside.group()
        supposed = _SUPPOSED.search(said)
        if supposed is not None:
            joint = _JOINT.search(said[: supposed.start()])
            if joint is None or len(said[supposed.end() :].split()) < 2:
                continue
            said = said[: joint.start()]
        if said.strip():
            yield start, start + len(said)

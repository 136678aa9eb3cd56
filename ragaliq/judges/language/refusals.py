"""Tell an answer that declines from one that answers, in the languages most often met.

Lexical and small on purpose: patterns decide sentence by sentence, and an answer is a refusal only
when nothing else in it could be one.

Patterns are searched in what `plain` makes of a sentence. Gaps are bounded, so that no text makes
the search slow. A language needs only the common wordings: what is not recognised is judged as a
claim, which errs on the visible side.
"""

from __future__ import annotations

import re
from typing import Literal

from ragaliq.judges.language.sentences import split_sentences

CONTEXT = (
    r"(?:provided |given |retrieved |available |supplied |above |current )*(?:context|documents?|"
    r"passages?|texts?|sources?|excerpts?|snippets?|search results|articles?|information|"
    r"knowledge base)(?: (?:provided|given|available|above|i have))?"
)
"""What a model calls the texts it was given."""

_REFUSALS = {
    "en": (
        r"\b(?:i|we) (?:do|did) not (?:\w+ )?know\b(?! (?:any|a))"
        r"|\b(?:i|we) (?:do|did) not (?:\w+ )?(?:have|possess|see|"
        r"find) (?:\w+ ){0,4}(?:information|info|knowledge|context|answer|idea|mention)\b"
        r"|\bi do not (?:\w+ )?have (?:\w+ ){0,3}(?:access|details?|data|records?)\b"
        r"|\b(?:i|we) (?:have|had|found|find|see) (?:no|insufficient) (?:\w+ ){0,2}(?:information|"
        r"info|access|details?|data|knowledge|context|answer|idea|mention)\b"
        r"|\b(?:i|we) (?:can|could|will) not (?:be able to )?(?:\w+ )?(?:answer|find|determine|"
        r"provide|tell|help|assist|say|confirm|locate|identify|verify|share|discuss|comply|"
        r"respond|access|fulfil|fulfill|speculate|disclose)\b(?! (?:enough|but|you how))"
        r"|\b(?:i|we) (?:am|are|was|were) (?:\w+ )?(?:not (?:sure|certain|aware|able to|allowed|"
        r"permitted|familiar)|unsure|unable to)\b"
        r"|\b(?:i|we) (?:would |must |have to |need to |respectfully )*(?:decline|refuse)\b"
        r"|\b(?:i|we) (?:would|will|do) (?:need|require) (?:more|additional|further)\b"
        rf"|(?:^|\b(?:the|this|that|these|your|any) ){CONTEXT} (?:\w+ ){{0,2}}?"
        r"(?:do|does|did|is|are|was|were|can|could|has|have) not (?:\w+ ){0,2}?(?:mention|contain|"
        r"provide|say|include|specif|state|cover|discuss|address|give|have|answer|describe|"
        r"indicate|explain|list|enough|sufficient|available|found|reveal|offer|clear)"
        rf"|\b(?:is|are|was|were) not (?:\w+ )?(?:mentioned|specified|provided|stated|given|found|"
        rf"included|discussed|covered|addressed|available|described)\b.{{0,20}} (?:the|this|that|"
        rf"these|your|my|any) {CONTEXT}\b"
        rf"|\b(?:there (?:is|are|was)|{CONTEXT} (?:contains?|provides?|has|have|gives?|makes?)) "
        r"(?:no|not any|not enough|insufficient) (?:\w+ ){0,3}?(?:information|info|mention|"
        r"details?|context|reference)\b"
        r"|^no (?:\w+ )?(?:information|mention|details?|answers?|results?|data|context)\b"
        rf".{{0,40}}?\b(?:found|available|provided|given|about|regarding|the {CONTEXT})\b"
        r"|\b(?:not enough|insufficient|inadequate) (?:\w+ )?(?:information|context|data|"
        r"details?)\b"
        r"|\b(?:beyond|outside) (?:of )?(?:my|the scope of (?:my|this|the))\b"
        rf"|\b(?:can not|could not|not possible to|impossible to|"
        rf"unable to) (?:be )?(?:\w+ )?(?:determine|answer|conclude|infer|establish|ascertain|"
        rf"tell|say|find|locate).{{0,60}}? (?:the|this|your|any) {CONTEXT}\b"
        r"|(?:^|, )(?:(?:this|that|it|the answer) is )?(?:unknown|n/?a|unclear|unanswerable|idk|"
        r"not sure|no (?:idea|clue|answer)|not (?:mentioned|available|specified|stated|provided|"
        r"found|given|applicable|answerable|known)|(?:can not|unable to) (?:answer|say|tell|"
        r"determine|help))\W*$"
    ),
    "de": (
        r"\bich wei(?:ß|ss) (?:es |das |leider |die antwort )*nicht\b"
        r"|\b(?:ich kann|kann ich|wir können|können wir) .{0,60}?\b(?:nicht|"
        r"keine)\b.{0,40}?(?:beantworten|antworten|sagen|finden|helfen|geben|entnehmen|bestimmen|"
        r"feststellen)"
        r"|\b(?:kontext|dokument|text|quellen?|unterlagen|informationen)\w* .{0,60}?\b(?:nicht|"
        r"keine)\b.{0,40}?(?:enthalten|erwähn|enthält|hervor|angegeben|angaben|genannt|"
        r"informationen|verfügbar|entnehmen|beantwort)"
        r"|\b(?:ich habe|es gibt|enthält|liegen) (?:\w+ ){0,2}?keine (?:\w+ )?(?:informationen|"
        r"angaben|antwort)"
        r"|\bnicht (?:genug|genügend|ausreichend)\w* (?:informationen|angaben|kontext)"
    ),
    "fr": (
        r"\bje ne (?:le )?(?:sais|connais) pas\b"
        r"|\bje ne (?:peux|suis|trouve|dispose|vois|parviens)\b.{0,40}?\b(?:pas|"
        r"aucune)\b.{0,50}?(?:répondre|aider|fournir|dire|déterminer|trouver|information|réponse)"
        r"|\bje n'ai (?:pas|aucune) .{0,30}?(?:information|réponse|accès|donnée)"
        r"|\b(?:contexte|document|texte|passage|source|"
        r"information)s?\b.{0,40}?\bne\b.{0,40}?\b(?:pas|aucune?)\b"
        r"|\b(?:il n'y a|n'est|n'est fait|ne contient) (?:pas|aucune?) .{0,30}?(?:information|"
        r"mention|contexte|texte|document)"
    ),
    "es": (
        r"\bno (?:lo )?(?:sé|sabemos)\b"
        r"|\bno (?:puedo|podemos|me es posible) (?:\w+ ){0,3}?(?:responder|contestar|ayudar|"
        r"proporcionar|decir|determinar|encontrar|confirmar)"
        r"|\bno (?:tengo|dispongo de|tenemos|encuentro|hay|se encuentra|contiene|"
        r"proporciona) (?:\w+ ){0,3}?(?:información|datos|respuesta|acceso|detalles)"
        r"|\b(?:contexto|documento|texto|pasaje|fuente|"
        r"información)s?\b.{0,40}?\bno (?:se )?(?:menciona|contiene|proporciona|incluye|"
        r"especifica|indica|dice|está|es)"
        r"|\bno se (?:menciona|especifica|indica|proporciona)\b.{0,60}?(?:contexto|documento|"
        r"texto|pasaje|información)"
    ),
    "it": (
        r"\bnon (?:lo )?so\b"
        r"|\bnon (?:posso|sono in grado di|riesco a) (?:\w+ ){0,3}?(?:rispondere|aiutar|fornir|"
        r"dire|determinare|trovare)"
        r"|\bnon (?:ho|dispongo di|ci sono|contiene|trovo|fornisce) (?:\w+ ){0,3}?(?:informazion|"
        r"dati|risposta|accesso)"
        r"|\b(?:contesto|documento|testo|fonte|informazioni)\b.{0,40}?\bnon (?:\w+ )?(?:menzion|"
        r"contien|fornisc|specific|indica|dice|è|sono|riport)"
    ),
    "pt": (
        r"\b(?:eu )?não sei\b"
        r"|\bnão (?:posso|consigo|é possível|sou capaz de) (?:\w+ ){0,3}?(?:responder|ajudar|"
        r"fornecer|dizer|determinar|encontrar)"
        r"|\bnão (?:tenho|há|encontrei|contém|fornece|possuo) (?:\w+ ){0,3}?(?:informaç|dados|"
        r"resposta|acesso)"
        r"|\b(?:contexto|documento|texto|fonte|informações)\b.{0,40}?\bnão (?:\w+ )?(?:mencion|"
        r"cont[ée]m|fornec|especific|indica|diz|está|é|inclu)"
    ),
    "nl": (
        r"\bik weet (?:het |dat |het antwoord )?niet\b"
        r"|\bik kan .{0,50}?\b(?:niet|geen)\b.{0,30}?(?:beantwoorden|vinden|zeggen|helpen|bepalen)"
        r"|\b(?:context|document|tekst|bron)\w* .{0,40}?\b(?:geen|niet)\b.{0,40}?(?:informatie|"
        r"vermeld|genoemd|beschikbaar|beantwoord)"
        r"|\b(?:er is|ik heb|bevat) (?:\w+ )?(?:geen|onvoldoende) (?:\w+ )?informatie"
    ),
    "pl": (
        r"\bnie wiem\b"
        r"|\bnie (?:mogę|jestem w stanie|potrafię) (?:\w+ ){0,3}?(?:odpowiedzieć|pomóc|określić|"
        r"podać|znaleźć|stwierdzić)"
        r"|\bnie mam (?:\w+ ){0,2}?(?:informacji|danych|dostępu)|\bbrak (?:\w+ )?informacji"
        r"|\b(?:kontekst|dokument|tekst)\w*\b.{0,30}? nie (?:zawiera|wspomina|podaje|określa)"
    ),
    "tr": (
        r"\bbilmiyorum\b|\bbilgim yok\b"
        r"|(?:cevap|yanıt) (?:veremem|veremiyorum)|(?:cevapla|yanıtla)y(?:amam|amıyorum)"
        r"|\b(?:bilgi|bağlam|belge|metin)\w*\b.{0,40}?(?:bulunmamaktadır|bulunmuyor|yer almıyor|"
        r"yok\b|içermiyor|belirtilmemiş|mevcut değil)"
    ),
    "ru": (
        r"\bне (?:знаю|знаем)\b"
        r"|\bне (?:могу|можем|удалось|получится) (?:\w+ ){0,3}?(?:ответить|помочь|сказать|найти|"
        r"определить|предоставить)"
        r"|\b(?:контекст|документ|текст|информаци|источник)\w*\b.{0,40}?\bне (?:содерж|упом|указ|"
        r"предостав|говор|сообща|достаточн)"
        r"|\b(?:нет|недостаточно|отсутствует) (?:\w+ )?(?:информаци|данных|сведений)"
    ),
    "zh": (
        r"不知道|不清楚|不太清楚|不確定|不确定|[无無]法(?:回答|确定|確定|提供|找到|判断|判斷|"
        r"得知)|不能回答"
        r"|(?:没有|沒有|缺乏|未找到)(?:足够|足夠|相关|相關|任何)?的?(?:信息|资料|資料|資訊|数据)"
        r"|(?:上下文|文[档檔]|文中|文本|[资資]料|信息|內容|内容)中?.{0,12}?(?:没有|沒有|未|并未|"
        r"不)(?:提到|提及|提供|包含|包括|[说說]明|涉及|[给給]出)"
    ),
    "ja": (
        r"(?:わか|分か)り(?:ません|かねます)|存じません|知りません|不明です|(?:お答え|回答|判断|"
        r"確認|提供)(?:することは|は)?でき(?:ません|かねます)|答えられません"
        r"|(?:情報|記載|記述|言及|説明)(?:が|は|も)?(?:されて|含まれて|記載されて)?(?:い|あり|"
        r"見つかり)ません"
    ),
    "ko": (
        r"모르겠습니다|모릅니다|알 수 없(?:습니다|어요)|찾을 수 없(?:습니다|어요)|"
        r"답변.{0,8}?(?:수 없습니다|어렵습니다)|대답할 수 없"
        r"|(?:정보|내용|언급)(?:가|이|은|는)? ?(?:없습니다|부족합니다|포함되어 있지 않|"
        r"나와 있지 않)|(?:언급|명시|제공)되(?:어 있)?지 않"
    ),
    "ar": (
        r"لا (?:أعرف|أعلم|أدري)|(?:لا (?:أستطيع|يمكنني)|لست قادرا على) (?:\w+ )?(?:الإجابة|"
        r"الاجابة|المساعدة|تقديم|تحديد)"
        r"|(?:لا (?:توجد|تتوفر|يوجد|يحتوي|يذكر|تذكر)|لم (?:يرد|يذكر|تذكر|يتم)).{0,40}?(?:معلومات|"
        r"السياق|النص|المستند|ذكر)|(?:السياق|النص|المستند) (?:\w+ )?(?:لا|لم) "
    ),
    "hi": (
        r"(?:मुझे|मुझको) .{0,20}?(?:नहीं पता|पता नहीं|नहीं मालूम|मालूम नहीं|जानकारी नहीं)|"
        r"मैं .{0,30}?(?:नहीं जानत|उत्तर नहीं|जवाब नहीं)"
        r"|(?:जानकारी|उल्लेख|संदर्भ) .{0,20}?नहीं (?:है|दी|दिया|किया|मिल|हैं)"
    ),
}

# What the pattern of a language cannot match without: most sentences have none of it, and to look
# for that takes a hundredth of the time that the patterns would.
_NEEDED = {
    "en": (
        "not ", " no ", "insufficient", "inadequate", "unsure", "unable", "impossible", "decline",
        "refuse", " need ", " require ", "beyond", "outside", "unknown", "unclear", "unanswerable",
        " na", "n/a", " idk",
    ),
    "de": ("nicht", "keine"),
    "fr": ("pas", "aucun"),
    "es": ("no ",),
    "it": ("non ",),
    "pt": ("não ",),
    "nl": ("niet", "geen", "onvoldoende"),
    "pl": ("nie ", "brak "),
    "tr": ("bilmiyorum", "cevap", "yanıt", "bilgi", "bağlam", "belge", "metin"),
    "ru": ("не", "отсутств"),
    "zh": tuple("不无無没沒缺未"),
    "ja": ("ません", "かねます", "不明"),
    "ko": ("모르", "모릅", "없", "어렵", "부족", "않"),
    "ar": ("لا ", "لست", "لم "),
    "hi": ("नहीं",),
}  # fmt: skip
_PATTERNS = [(_NEEDED[language], re.compile(pattern)) for language, pattern in _REFUSALS.items()]


# What is said around an answer: greetings, thanks, offers of help, advice.

# Its three parts are asked at the beginning, at the beginning of a word, and at a character that is
# not Latin: alternatives that were tried at every character took six times as long.
_SMALL_TALK = re.compile(
    # All of the sentence, or how it begins.
    r"^(?:(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening))(?:,? \w+)?\W*$"
    r"|dear \w+(?: \w+)?\W*$"
    r"|(?:sure|certainly|of course|absolutely|okay|ok|great|thanks|thank you|you are welcome|yes|"
    r"no|yep|nope|understood|got it|alright|unfortunately|no problem|(?:great|"
    r"good) question)(?: thing| very much| so much| for (?:asking|your).{0,30})?\W*$"
    r"|(?:(?:i am|we are) )?(?:\w+ )?(?:sorry|afraid)(?: (?:for|to|about|that)\b.{0,50})?\W*$"
    r"|(?:my |our )?apologies\b|(?:i|we) (?:do )?apologi[sz]e\b"
    r"|(?:here (?:is|are)|below (?:is|are)) (?:what|the|a|an|some|my|your)\b(?! \w+ (?:of|in|"
    r"that)).{0,60}$"
    r"|(?:hallo|guten (?:tag|morgen|abend)|gerne|natürlich|danke|ja|nein|leider)\W*$"
    r"|(?:bonjour|salut|bien sûr|merci|oui|non|désolée?|je suis désolée?|malheureusement)\W*$"
    r"|¡?(?:hola|claro|por supuesto|gracias|sí|no|lo siento|buenos días)\W*$"
    r"|(?:ciao|buongiorno|certo|grazie|sì|mi dispiace)\W*$"
    r"|(?:olá|oi|claro|obrigad[oa]|sim|não|desculpe|sinto muito|lamento)\W*$"
    r"|(?:hoi|zeker|natuurlijk|bedankt|ja|nee|sorry|helaas)\W*$"
    r"|(?:привет|здравствуйте|конечно|спасибо|да|нет|извините|к сожалению)\W*$"
    r"|(?:你好|您好|好的|当然|當然|谢谢|謝謝|是的?|不是|抱歉|对不起|對不起|很抱歉|不客气)\W*$"
    r"|(?:こんにちは|はい|いいえ|もちろん(?:です)?|ありがとうございます|申し訳(?:ありません|"
    r"ございません))\W*$"
    r"|(?:안녕하세요|네|예|아니요|물론(?:입니다|이죠)?|감사합니다|죄송합니다)\W*$"
    r"|(?:مرحبا|أهلا|بالتأكيد|شكرا|نعم|لا|آسف|عذرا)\W*$"
    r"|(?:नमस्ते|ज़रूर|जी हाँ|हाँ|नहीं|धन्यवाद|क्षमा करें|माफ़ कीजिए)\W*$)"
    # Anywhere in it.
    r"|\b(?:let me know\b|feel free to\b|do not hesitate\b|(?:happy|glad) to (?:help|assist)\b"
    r"|hope (?:this|that|it) (?:helps|answers|clarifies|is helpful)\b|is there anything else\b"
    r"|if (?:you (?:have|need|would like|want)|there is) (?:\w+ ){0,3}?(?:questions?|help|"
    r"details|information|assistance|clarification|else)\b"
    r"|lassen sie es mich wissen|stehe? (?:ich )?(?:ihnen )?gerne? zur verfügung|(?:wenn|"
    r"falls) sie (?:noch )?(?:weitere )?fragen haben|tut mir leid\W*$"
    r"|n'hésitez pas\b|j'espère que (?:cela|ça)\b"
    r"|(?:no dudes? en|no dude en|espero que (?:esto|te|le) (?:ayude|sirva)|házmelo saber)\b"
    r"|(?:non esit\w+ a|fammi sapere)\b"
    r"|não hesite em|espero (?:que isso|ter) (?:ajud\w+)"
    r"|aarzel niet\b|laat het me weten\b"
    r"|дайте (?:мне )?знать|обращайтесь|надеюсь,? это (?:помо\w+|поможет))"
    r"|(?=[请請随隨希お언도ل])(?:(?:请|請)?(?:随时|隨時)(?:告诉|告訴|联系|聯繫|提问|提問)"
    r"|希望(?:这|這|以上).{0,8}?(?:帮助|幫助|有用)"
    r"|お気軽に|お知らせください|お役に立て|언제든지|도움이 되(?:었|길|셨)|لا تتردد)"
)
"""Greetings, thanks, apologies and offers of help: nothing that could be checked."""

# What goes with a refusal without turning it into an answer: the same, advice, what the context is
# about.
_COURTESY = re.compile(
    rf"{_SMALL_TALK.pattern}|"
    r"\b(?:please|you (?:may|might|can|could|should)|i (?:would )?(?:recommend|suggest|advise)|"
    r"try)\b.{0,30}?(?:check|consult|contact|refer|look|ask|visit|provid|shar|rephras|clarif|"
    r"specif|review|reach out|search|seek)"
    r"|\b(?:if you (?:can |could )?(?:provide|share|give|have|tell)|for (?:more|further|"
    r"accurate) )"
    rf"|\b(?:the|this|these|your) {CONTEXT} (?:\w+ )?(?:(?:only|just|mainly|primarily|solely|"
    rf"mostly) "
    r"\w+|(?:focuses|focus) on|(?:is|are) (?:only |mainly |primarily )?about|deals? with)\b"
    r"|\b(?:bitte|am besten) (?:wenden|prüfen|geben|konsultieren|fragen)|\bveuillez\b|"
    r"\bpor favor\b|\bpuoi fornir|请(?:提供|咨询|查阅)|請(?:提供|諮詢|查閱)|ください|пожалуйста"
)
_CONTRASTS = re.compile(
    r", (?:and|so|which|since|because|therefore|thus|meaning)\b|: | [–—-] |\(|\b(?:but|however|"
    r"although|though|yet|nevertheless|that said|aber|jedoch|allerdings|doch|mais|cependant|pero|"
    r"sin embargo|ma|però|tuttavia|mas|porém|maar|echter|ale|jednak|ancak|ama|fakat|но|однако|"
    r"а)\b|;|但是?|不過|不过|然而|しかし|ですが|ますが|하지만|그러나|لكن|लेकिन|परंतु"
)
"""Words after which an answer may begin all the same: "I do not know the year, but ..."."""


# What kind of sentence it is.

SentenceKind = Literal["statement", "question", "refusal", "courtesy"]

_LONGEST = 600  # characters; no sentence that only declines is longer
_MOST_SENTENCES = 40  # no refusal goes on for longer
_SHORT = 3  # characters up to which text without spaces counts as a single word
_DIGIT = re.compile(r"\d")
_ASKS = re.compile(r"[?？؟;՞]\s*[\"'”’»)\]*_」』]*\s*$")
# They assert: "It opens at nine, doesn't it?", "Did you know that it opens at nine?"
_ASSERTS_BY_ASKING = re.compile(
    r"^\W*did you know\b|^\W*(?:wussten sie|saviez-vous|sabías que|lo sapevi)\b"
    r"|[,–-]\s*(?:right|correct|okay|ok|no|yes|eh|or not|don't you think|wouldn't you say|(?:is|"
    r"are|was|were|do|does|did|has|have|had|can|could|will|would|should|must)(?:n't| not)? (?:it|"
    r"they|he|she|we|you|i|there|that|this)|(?:is|are|was|were|do|does|did) (?:it|they|he|she|we|"
    r"you|i|there) not|oder|nicht wahr|stimmt's|n'est-ce pas|non|pas vrai|verdad|no es así|vero|"
    r"giusto|não é|certo|toch|nietwaar|не так ли|правда)\s*[?？]\W*$"
    r"|(?:吧|对吧|對吧|对吗|對嗎|ですよね|よね|지요|죠)\s*[?？]\W*$",
    re.IGNORECASE,
)
_GREEK = re.compile("[\u0370-\u03ff]")
_MARKUP = re.compile(r"[*_`#>\"“”«»]+|\[\d{1,3}\]")
_APOSTROPHES = str.maketrans("’`´", "'''")
_WRITTEN_OUT = (
    (re.compile(r"\bcan'?not\b|\bcan't\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"\bi'd\b"), "i would"),
    (re.compile(r"\b(it|that|there|here)'s\b"), r"\1 is"),
)


def is_refusal(text: str) -> bool:
    """Whether an answer declines to answer, as a whole.

    True for "I don't know.", "Sorry, the context does not say when.", also with advice or an offer
    of help around it. False as soon as a sentence, or what follows a "but", answers all the same.
    Covers English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Turkish, Russian,
    Chinese, Japanese, Korean, Arabic and Hindi.
    """
    # Longer answers are no refusals: looking at the beginning is enough to tell.
    spans = split_sentences(text[: _LONGEST * _MOST_SENTENCES])
    sentences = [text[start:end] for start, end in spans]
    if len(sentences) > _MOST_SENTENCES:
        return False
    kinds = set[SentenceKind]()
    for sentence in sentences:
        kinds.add(kind := sentence_kind(sentence))
        if kind == "statement" and not _COURTESY.search(plain(sentence)):
            return False
    return "refusal" in kinds


def sentence_kind(sentence: str) -> SentenceKind:
    """What one sentence does.

    A `refusal` declines to answer and says nothing else; a `question` asserts nothing as "...,
    isn't it?" does; a `courtesy` greets, thanks, apologises or offers help, without a digit.
    Anything else is a `statement`.
    """
    said = plain(sentence)
    if (
        len(sentence) <= _LONGEST
        and refuses(said)
        and all(map(_adds_nothing, _CONTRASTS.split(said)))
    ):
        return "refusal"
    asks = _ASKS.search(sentence[-20:])
    if (
        asks
        and (asks.group()[0] != ";" or _GREEK.search(sentence))
        and not any(map(_ASSERTS_BY_ASKING.search, (sentence[:40], sentence[-40:])))
    ):
        return "question"
    return "courtesy" if _SMALL_TALK.search(said) and not _DIGIT.search(said) else "statement"


def _adds_nothing(part: str) -> bool:
    """Whether a part of a sentence that declines declines too, or is a word or a courtesy."""
    part = part.strip(" ,.;:，、。")
    is_word = len(part.split()) <= 1 and (part.isascii() or len(part) <= _SHORT)
    return is_word or refuses(part) or _COURTESY.search(part) is not None


def refuses(said: str) -> bool:
    """Whether there is a refusal anywhere in a sentence that is `plain`."""
    padded = f" {said} "
    for needed, pattern in _PATTERNS:
        for part in needed:
            if part in padded:
                if pattern.search(said):
                    return True
                break
    return False


def plain(sentence: str) -> str:
    """A sentence as the patterns expect it: lower case, no markup, contractions written out."""
    said = _MARKUP.sub(" ", sentence[:_LONGEST]).lower().translate(_APOSTROPHES)
    if "'" in said or "cannot" in said:
        for pattern, replacement in _WRITTEN_OUT:
            said = pattern.sub(replacement, said)
    return " ".join(said.split())

"""What is said around an answer: greetings, thanks, offers of help, advice.

Searched like the patterns of `phrases`, in sentences made plain by `refusals.plain`.
"""

from __future__ import annotations

import re

from ragaliq.judges.language.phrases import CONTEXT

__all__ = ["ACCOMPANIMENTS", "CONTRASTS", "SMALL_TALK"]

SMALL_TALK = re.compile(
    r"^(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening))(?:,? \w+)?\W*$"
    r"|^dear \w+(?: \w+)?\W*$"
    r"|^(?:sure|certainly|of course|absolutely|okay|ok|great|thanks|thank you|you are welcome|"
    r"yes|no|"
    r"yep|nope|understood|got it|alright|unfortunately|no problem|(?:great|good) question)"
    r"(?: thing| very much| so much| for (?:asking|your).{0,30})?\W*$"
    r"|^(?:(?:i am|we are) )?(?:\w+ )?(?:sorry|afraid)(?: (?:for|to|about|that)\b.{0,50})?\W*$"
    r"|^(?:my |our )?apologies\b|^(?:i|we) (?:do )?apologi[sz]e\b"
    r"|\blet me know\b|\bfeel free to\b|\bdo not hesitate\b|\b(?:happy|glad) to (?:help|assist)\b"
    r"|\bhope (?:this|that|it) (?:helps|answers|clarifies|is helpful)\b|"
    r"\bis there anything else\b"
    r"|\bif (?:you (?:have|need|would like|want)|there is) (?:\w+ ){0,3}?(?:questions?|help|"
    r"details|"
    r"information|assistance|clarification|else)\b"
    r"|^(?:here (?:is|are)|below (?:is|are)) (?:what|the|a|an|some|my|your)\b(?! \w+ (?:of|in|"
    r"that))"
    r".{0,60}$"
    r"|^(?:hallo|guten (?:tag|morgen|abend)|gerne|natürlich|danke|ja|nein|leider)\W*$|"
    r"\b(?:lassen sie es mich wissen|stehe? (?:ich )?(?:ihnen )?gerne? zur verfügung|"
    r"(?:wenn|falls) sie (?:noch )?(?:weitere )?fragen haben|tut mir leid\W*$)"
    r"|^(?:bonjour|salut|bien sûr|merci|oui|non|désolée?|je suis désolée?|malheureusement)\W*$|"
    r"\bn'hésitez pas\b|\bj'espère que (?:cela|ça)\b"
    r"|^¡?(?:hola|claro|por supuesto|gracias|sí|no|lo siento|buenos días)\W*$|"
    r"\b(?:no dudes? en|no dude en|espero que (?:esto|te|le) (?:ayude|sirva)|házmelo saber)\b"
    r"|^(?:ciao|buongiorno|certo|grazie|sì|mi dispiace)\W*$|\b(?:non esit\w+ a|fammi sapere)\b"
    r"|^(?:olá|oi|claro|obrigad[oa]|sim|não|desculpe|sinto muito|lamento)\W*$|"
    r"\b(?:não hesite em|espero (?:que isso|ter) (?:ajud\w+))"
    r"|^(?:hoi|zeker|natuurlijk|bedankt|ja|nee|sorry|helaas)\W*$|\baarzel niet\b|"
    r"\blaat het me weten\b"
    r"|^(?:привет|здравствуйте|конечно|спасибо|да|нет|извините|к сожалению)\W*$|"
    r"\b(?:дайте (?:мне )?знать|обращайтесь|надеюсь,? это (?:помо\w+|поможет))"
    r"|^(?:你好|您好|好的|当然|當然|谢谢|謝謝|是的?|不是|抱歉|对不起|對不起|很抱歉|不客气)\W*$|"
    r"(?:请|請)?(?:随时|隨時)(?:告诉|告訴|联系|聯繫|提问|提問)|希望(?:这|這|以上).{0,8}?(?:帮助|"
    r"幫助|有用)"
    r"|^(?:こんにちは|はい|いいえ|もちろん(?:です)?|ありがとうございます|申し訳(?:ありません|"
    r"ございません))\W*$|"
    r"お気軽に|お知らせください|お役に立て"
    r"|^(?:안녕하세요|네|예|아니요|물론(?:입니다|이죠)?|감사합니다|죄송합니다)\W*$|언제든지|"
    r"도움이 되(?:었|길|셨)"
    r"|^(?:مرحبا|أهلا|بالتأكيد|شكرا|نعم|لا|آسف|عذرا)\W*$|لا تتردد"
    r"|^(?:नमस्ते|ज़रूर|जी हाँ|हाँ|नहीं|धन्यवाद|क्षमा करें|माफ़ कीजिए)\W*$"
)
"""Greetings, thanks, apologies and offers of help: nothing that could be checked."""

ACCOMPANIMENTS = re.compile(
    r"\b(?:please|you (?:may|might|can|could|should)|i (?:would )?(?:recommend|suggest|advise)|"
    r"try)\b"
    r".{0,30}?(?:check|consult|contact|refer|look|ask|visit|provid|shar|rephras|clarif|specif|"
    r"review|"
    r"reach out|search|seek)"
    r"|\b(?:if you (?:can |could )?(?:provide|share|give|have|tell)|for (?:more|further|"
    r"accurate) )"
    rf"|\b(?:the|this|these|your) {CONTEXT} (?:\w+ )?(?:(?:only|just|mainly|primarily|solely|"
    rf"mostly) "
    r"\w+|(?:focuses|focus) on|(?:is|are) (?:only |mainly |primarily )?about|deals? with)\b"
    r"|\b(?:bitte|am besten) (?:wenden|prüfen|geben|konsultieren|fragen)|\bveuillez\b|"
    r"\bpor favor\b|"
    r"\bpuoi fornir|请(?:提供|咨询|查阅)|請(?:提供|諮詢|查閱)|ください|пожалуйста"
)
"""What goes with a refusal without turning it into an answer: advice, what the context is about."""

CONTRASTS = re.compile(
    r"\b(?:but|however|although|though|yet|nevertheless|that said|aber|jedoch|allerdings|doch|"
    r"mais|"
    r"cependant|pero|sin embargo|ma|però|tuttavia|mas|porém|maar|echter|ale|jednak|ancak|ama|"
    r"fakat|"
    r"но|однако|а)\b|;|但是?|不過|不过|然而|しかし|ですが|ますが|하지만|그러나|لكن|लेकिन|परंतु"
)
"""Words after which an answer may begin all the same: "I do not know the year, but ..."."""

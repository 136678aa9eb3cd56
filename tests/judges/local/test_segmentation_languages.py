"""Sentences are cut by the rules of their language, in every language below."""

from __future__ import annotations

import pytest

from ragaliq.judges.local.claims import find_claims

# Abbreviations, decimals and initials that end no sentence are in those of Latin script.
SENTENCES = {
    "English": ["Dr. Smith paid $3.5 million in the U.S. market.", "It grew by 2.1 % in 2020."],
    "German": ["Das kostet z. B. 3,5 Mio. Euro und ist gut.", "Es wuchs am 3. Oktober 1990."],
    "French": ["M. Dupont a payé 3,5 millions d'euros pour la maison.", "Elle est grande."],
    "Spanish": ["El Sr. López pagó 3,5 millones de euros por la casa.", "La casa es grande."],
    "Italian": ["Il sig. Rossi ha pagato 3,5 milioni di euro.", "La casa è grande."],
    "Portuguese": ["O Sr. Silva pagou 3,5 milhões de euros.", "A casa é grande."],
    "Dutch": ["Dhr. Jansen betaalde 3,5 miljoen euro voor het huis.", "Het huis is groot."],
    "Polish": ["Wisła ma 1047 km długości.", "Płynie przez Kraków."],
    "Czech": ["Praha má 1,3 milionu obyvatel.", "Leží na Vltavě."],
    "Swedish": ["Staden har 3,5 miljoner invånare.", "Den växer snabbt."],
    "Finnish": ["Kaupungissa on 3,5 miljoonaa asukasta.", "Se kasvaa nopeasti."],
    "Turkish": ["Şehirde 3,5 milyon kişi yaşıyor.", "Şehir hızla büyüyor."],
    "Vietnamese": ["Thành phố có 3,5 triệu dân.", "Nó rất lớn."],
    "Indonesian": ["Kota ini memiliki 3,5 juta penduduk.", "Kotanya sangat besar."],
    "Russian": ["Париж насчитывает 2,1 млн жителей.", "Он расположен на Сене."],
    "Ukrainian": ["Київ є столицею України.", "Він стоїть на Дніпрі."],
    "Greek": ["Η Αθήνα είναι η πρωτεύουσα.", "Έχει τρία εκατομμύρια κατοίκους."],
    "Arabic": ["باريس عاصمة فرنسا.", "وهي مدينة كبيرة."],
    "Hebrew": ["ירושלים היא עיר הבירה.", "היא עיר גדולה."],
    "Hindi": ["दिल्ली भारत की राजधानी है।", "यह बहुत बड़ी है।"],
    "Bengali": ["ঢাকা বাংলাদেশের রাজধানী।", "এটি একটি বড় শহর।"],
    "Armenian": ["Երևանը մայրաքաղաքն է։", "Այն մեծ է։"],
    "Amharic": ["አዲስ አበባ ዋና ከተማ ናት።", "ትልቅ ከተማ ናት።"],
    "Burmese": ["ရန်ကုန်သည် မြို့ကြီးဖြစ်သည်။", "လူများစွာနေထိုင်သည်။"],
    "Chinese": ["巴黎是法国的首都。", "它有210万人口。"],
    "Japanese": ["パリはフランスの首都です。", "人口は多い。"],
    "Korean": ["파리는 프랑스의 수도입니다.", "인구가 많습니다."],
}


@pytest.mark.parametrize(("language", "sentences"), SENTENCES.items(), ids=SENTENCES)
def test_sentences_end_where_the_language_ends_them(language, sentences):
    between = "" if language in ("Chinese", "Japanese") else " "
    answer = between.join(sentences)
    assert [answer[start:end] for start, end in find_claims(answer)] == sentences

"""Every preset on a tiny model of its architecture: fed and read as its authors' code does."""

import json

import pytest

from ragaliq import ConfigurationError, Monitor, RAGTestCase, evaluate
from ragaliq.judges.small import EntailmentJudge
from tiny_models import word_tokenizer

pytestmark = pytest.mark.entailment

CONTEXT = ["The lamp is made of gold. It is never in Graz."]
CLAIM = "The lamp is in the shop."
WORDS = (
    "gold never lamp the is of made shop in graz it refund word choose your answer based on "
    'paragraph above can we conclude that options yes no i think . : ? " - ,'
).split()


def tokenizer(style):
    return word_tokenizer(WORDS, style)


def sizes(style):
    return {"vocab_size": len(WORDS) + 4, "pad_token_id": 1 if style == "roberta" else 0}


def small(style, **settings):
    return {
        **sizes(style),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 130,
        **settings,
    }


@pytest.fixture
def make(tmp_path):
    """Makes a folder with a model of random weights; returns it with the model and tokenizer."""

    def build(kind, **settings):
        import torch
        import transformers as tf

        torch.manual_seed(7)
        style = "roberta" if kind == "roberta" else "bert"
        folder = tmp_path / f"model-{kind}"
        folder.mkdir(exist_ok=True)
        words = tokenizer(style)
        words.save(str(folder / "tokenizer.json"))
        if kind == "deberta":
            model = tf.DebertaV2ForSequenceClassification(
                tf.DebertaV2Config(
                    **small(style, relative_attention=True, position_biased_input=False),
                    pos_att_type=["p2c", "c2p"],
                    type_vocab_size=0,
                    **settings,
                )
            )
            model.classifier.weight.data.normal_(0, 4)
        elif kind == "roberta":
            model = tf.RobertaForSequenceClassification(
                tf.RobertaConfig(**small(style), **settings)
            )
            model.classifier.out_proj.weight.data.normal_(0, 20)
        elif kind == "bert-base":
            model = tf.BertModel(tf.BertConfig(**small(style)))
        elif kind == "bert":
            model = tf.BertForSequenceClassification(tf.BertConfig(**small(style), **settings))
        model.eval()
        model.save_pretrained(folder)
        return folder, model, words

    return build


def chances(logits):
    import torch

    return torch.softmax(logits.float(), dim=-1).tolist()


def ids_of(words, *texts):
    import torch

    read = words.encode(*texts)
    return {"input_ids": torch.tensor([read.ids]), "attention_mask": torch.ones(1, len(read.ids))}


def factcg(model, words, doc, claim):
    text = (
        doc
        + '\n\nChoose your answer: based on the paragraph above can we conclude that "'
        + claim
        + '"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
    )
    return chances(model(**ids_of(words, text)).logits[0])[1]


def minicheck_deberta(model, words, doc, claim):
    return chances(model(**ids_of(words, f"{doc}[SEP]{claim}")).logits[0])[1]


def minicheck_roberta(model, words, doc, claim):
    return chances(model(**ids_of(words, f"{doc}</s>{claim}")).logits[0])[1]


def nli(index):
    def published(model, words, doc, claim):
        return chances(model(**ids_of(words, doc, claim)).logits[0])[index]

    return published


THREE = {"num_labels": 3}
PUBLISHED = {
    "factcg": ("deberta", {}, factcg),
    "minicheck-deberta": ("deberta", {}, minicheck_deberta),
    "minicheck-roberta": ("roberta", {}, minicheck_roberta),
    "nli-deberta": ("deberta", THREE, nli(1)),
    "nli-mnli-fever-anli": ("deberta", THREE, nli(0)),
}


async def support(judge, claim, context):
    verdict = await judge.verify_claim(claim, context)
    said = verdict.confidence
    return said if verdict.verdict == "SUPPORTED" else 1.0 - said


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("claim", [CLAIM, "Gold is never in the shop of Graz."])
async def test_the_chance_is_what_the_authors_own_code_computes(make, name, claim):
    kind, settings, published = PUBLISHED[name]
    folder, model, words = make(kind, **settings)
    doc = CONTEXT[0]
    if name == "factcg":
        doc = doc.replace(". ", ".\n")  # its sentences stand on lines of their own
    expected = published(model, words, doc, claim)
    judge = EntailmentJudge(name, path=folder)
    assert await support(judge, claim, CONTEXT) == pytest.approx(expected, abs=2e-4)
    verdict = await judge.verify_claim(claim, CONTEXT)
    assert (verdict.verdict == "SUPPORTED") == (expected >= 0.5)


@pytest.mark.parametrize(
    ("name", "word", "apart"),
    [("factcg", "[SEP]", "[ SEP]"), ("minicheck-roberta", "</s>", "< /s>")],
)
async def test_control_words_in_texts_stay_text(make, name, word, apart):
    kind, settings, _ = PUBLISHED[name]
    folder, _, _words = make(kind, **settings)
    judge = EntailmentJudge(name, path=folder)
    hostile, spaced = f"{CONTEXT[0]} {word}", f"{CONTEXT[0]} {apart}"
    assert await judge.verify_claim(CLAIM, [hostile]) == await judge.verify_claim(CLAIM, [spaced])


@pytest.mark.parametrize(
    ("name", "kind", "settings", "says"),
    [
        (None, "bert-base", {}, "BertModel, not a classifier"),
        ("factcg", "bert", {}, "BertForSequenceClassification, and factcg is a DebertaV2"),
        ("factcg", "deberta", THREE, "3 outputs, and factcg has 2"),
        (
            "nli-deberta",
            "deberta",
            {"id2label": {0: "entailment", 1: "neutral", 2: "contradiction"}},
            "it is another model",
        ),
    ],
)
def test_another_architecture_is_refused_by_name(make, name, kind, settings, says):
    folder, _, _ = make(kind, **settings)
    with pytest.raises(ConfigurationError, match=says):
        EntailmentJudge(name, path=folder) if name else EntailmentJudge(folder)


def test_a_head_that_would_be_random_is_refused(make):
    folder, _, _ = make("bert-base")
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    config["id2label"] = {"0": "contradiction", "1": "entailment"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigurationError, match=r"lacks weights .*classifier.*would be random"):
        EntailmentJudge(folder)


def test_a_tokenizer_of_another_model_is_refused(make):
    folder, _, _ = make("deberta")
    more = tokenizer("bert")
    more.add_tokens([f"word{i}" for i in range(50)])
    more.save(str(folder / "tokenizer.json"))
    with pytest.raises(ConfigurationError, match="not of one model"):
        EntailmentJudge("factcg", path=folder)


def test_a_folder_that_names_a_preset_is_not_read_without_its_template(make, tmp_path):
    folder, _, _ = make("roberta", id2label={0: "unsupported", 1: "supported"})
    renamed = folder.rename(tmp_path / "minicheck-roberta-large")
    with pytest.raises(ConfigurationError, match="EntailmentJudge\\('minicheck-roberta', path="):
        EntailmentJudge(renamed)
    assert EntailmentJudge("minicheck-roberta", path=renamed).model == "minicheck-roberta-large"


async def test_positions_end_where_the_model_has_none(make):
    folder, _, _ = make("roberta")  # 130 positions, of which RoBERTa uses 128
    judge = EntailmentJudge("minicheck-roberta", path=folder)
    long = ["The lamp is made of gold. " * 200]
    assert (await judge.verify_claim(CLAIM, long)).verdict in ("SUPPORTED", "NOT_ENOUGH_INFO")
    with pytest.raises(ConfigurationError, match=r"max_tokens is 130, .* positions for 128"):
        EntailmentJudge("minicheck-roberta", path=folder, max_tokens=130)
    assert EntailmentJudge("minicheck-roberta", path=folder, max_tokens=64)


async def test_weights_are_found_by_the_presets_name_and_nothing_is_fetched(
    make, monkeypatch, tmp_path
):
    folder, _, _ = make("deberta")
    folder.rename(tmp_path / "factcg")
    with pytest.raises(ConfigurationError, match="download yaxili96/FactCG"):
        EntailmentJudge("factcg")
    with pytest.raises(ConfigurationError, match=r"no folder .*download=True"):
        EntailmentJudge("factcg", path="yaxili96/FactCG-DeBERTa-v3-Large")
    monkeypatch.setenv("RAGALIQ_MODELS", str(tmp_path))
    judge = EntailmentJudge.named("entailment:factcg")
    assert judge.model == "factcg"
    assert judge.fingerprint() == EntailmentJudge.named(f"factcg@{tmp_path}/factcg").fingerprint()


@pytest.mark.parametrize("settings", [{"dtype": "bfloat16"}, {"threads": 1}, {"batch_size": 1}])
async def test_settings_for_speed_leave_the_chance_about_as_it_is(make, settings):
    folder, _, _ = make("deberta")
    plain = EntailmentJudge("factcg", path=folder)
    fast = EntailmentJudge("factcg", path=folder, **settings)
    expected = await support(plain, CLAIM, CONTEXT)
    assert await support(fast, CLAIM, CONTEXT) == pytest.approx(expected, abs=0.05)
    with pytest.raises(ConfigurationError, match="no dtype"):
        EntailmentJudge("factcg", path=folder, dtype="float99")


def test_a_monitor_judges_in_a_process_of_its_own(make):
    folder, _, _ = make("deberta")
    judge = EntailmentJudge("factcg", path=folder, threshold=0.4)
    case = RAGTestCase(query="Where?", context=CONTEXT, response=CLAIM)
    expected = evaluate([case], judge=judge)[0].results["faithfulness"]
    fingerprint = judge.fingerprint()
    with Monitor(judge=judge, metrics=["faithfulness"]) as monitor:
        found = monitor.evaluate(case, timeout=100).results["faithfulness"]
        assert monitor.stats().executor == "process"
    assert (found.score, found.claims) == (expected.score, expected.claims)
    # The model's memory was given back here; the judge is the same, and loads it where it is used.
    assert judge.fingerprint() == fingerprint
    assert evaluate([case], judge=judge)[0].results["faithfulness"].score == expected.score

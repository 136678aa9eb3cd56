"""Tiny models made here: their verdicts follow from two words, so they are known.

A window with "gold" in it supports any claim, one with "never" in it contradicts it.
"""

import json

import pytest

from tiny_models import lookup_onnx, word_tokenizer

WORDS = "gold never . the lamp is of made shop in graz word".split()
THREE_WAY = {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}


@pytest.fixture
def tokenizer():
    return word_tokenizer(WORDS)


@pytest.fixture
def hugging_face(tokenizer, tmp_path):
    """Makes a folder with a BERT or RoBERTa of one layer."""

    def make(kind="bert", *, id2label=THREE_WAY):
        import torch
        import transformers

        settings = {
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "intermediate_size": 8,
            "max_position_embeddings": 64,
            "id2label": id2label,
            "label2id": {name: i for i, name in id2label.items()},
            "pad_token_id": 0,
        }
        if kind == "bert":
            model = transformers.BertForSequenceClassification(transformers.BertConfig(**settings))
        else:
            model = transformers.RobertaForSequenceClassification(
                transformers.RobertaConfig(**settings)
            )
        _craft(torch, model, kind, tokenizer)
        folder = tmp_path / f"tiny-{kind}"
        model.save_pretrained(folder)
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
        ).save_pretrained(folder)
        return folder

    return make


def _craft(torch, model, kind, tokenizer):
    """Weights such that the first number of the output says "gold", the second "never"."""
    base = model.bert if kind == "bert" else model.roberta
    layer = base.encoder.layer[0]
    outputs = model.config.num_labels
    with torch.no_grad():
        for name, values in model.named_parameters():
            values.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
        base.embeddings.word_embeddings.weight[tokenizer.token_to_id("gold"), 0] = 1.0
        base.embeddings.word_embeddings.weight[tokenizer.token_to_id("never"), 1] = 1.0
        # All tokens are looked at alike, and what they say is passed on.
        for dense in (layer.attention.self.value, layer.attention.output.dense):
            dense.weight.copy_(torch.eye(8))
        head = base.pooler.dense if kind == "bert" else model.classifier.dense
        head.weight.copy_(torch.eye(8))
        out = model.classifier if kind == "bert" else model.classifier.out_proj
        out.weight[outputs - 1, 0] = 12.0
        out.bias[max(0, outputs - 2)] = 6.0 if outputs > 1 else -6.0
        if outputs == 3:
            out.weight[0, 1] = 12.0


@pytest.fixture
def onnx_file(tokenizer, tmp_path):
    """Makes an ONNX file that looks each word up and keeps the largest numbers."""

    def make(*, config=True, inputs=("input_ids", "attention_mask")):
        rows = {None: (0, 6, 0), "gold": (0, 6, 12), "never": (12, 6, 0)}
        file = lookup_onnx(tmp_path / "onnx", tokenizer, rows, of_text=True, inputs=inputs)
        if config:
            told = {"id2label": THREE_WAY, "max_position_embeddings": 64}
            (file.parent / "config.json").write_text(json.dumps(told))
        return file

    return make

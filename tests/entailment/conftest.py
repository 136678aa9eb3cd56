"""Tiny models made here: their verdicts follow from two words, so they are known.

A window with "gold" in it supports any claim, one with "never" in it contradicts it.
"""

import json

import pytest

WORDS = "[PAD] [UNK] [CLS] [SEP] gold never . the lamp is of made shop in graz word".split()
GOLD, NEVER = WORDS.index("gold"), WORDS.index("never")
THREE_WAY = {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}


@pytest.fixture
def tokenizer():
    """Words, split at spaces and points; `[CLS] context [SEP] claim [SEP]`."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return made


@pytest.fixture
def hugging_face(tokenizer, tmp_path):
    """Makes a folder with a BERT or RoBERTa of one layer."""

    def make(kind="bert", *, id2label=THREE_WAY, positions=64):
        import torch
        import transformers

        settings = {
            "vocab_size": len(WORDS),
            "hidden_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "intermediate_size": 8,
            "max_position_embeddings": positions,
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
        _craft(torch, model, kind, len(id2label))
        folder = tmp_path / f"tiny-{kind}"
        model.save_pretrained(folder)
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
        ).save_pretrained(folder)
        return folder

    return make


def _craft(torch, model, kind, outputs):
    """Weights such that the first number of the output says "gold", the second "never"."""
    base = model.bert if kind == "bert" else model.roberta
    layer = base.encoder.layer[0]
    with torch.no_grad():
        for name, values in model.named_parameters():
            values.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
        base.embeddings.word_embeddings.weight[GOLD, 0] = 1.0
        base.embeddings.word_embeddings.weight[NEVER, 1] = 1.0
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
        import numpy
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        table = numpy.tile(numpy.array([0.0, 6.0, 0.0], "float32"), (len(WORDS), 1))
        table[GOLD, 2] = table[NEVER, 0] = 12.0
        graph = helper.make_graph(
            [
                helper.make_node("Gather", ["table", "input_ids"], ["each"], axis=0),
                helper.make_node("ReduceMax", ["each", "axis"], ["logits"], keepdims=0),
            ],
            "tiny",
            [helper.make_tensor_value_info(n, TensorProto.INT64, ["b", "s"]) for n in inputs],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", 3])],
            [
                numpy_helper.from_array(table, "table"),
                numpy_helper.from_array(numpy.array([1], "int64"), "axis"),
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        folder = tmp_path / "onnx"
        folder.mkdir()
        onnx.save(model, folder / "model.onnx")
        tokenizer.save(str(folder / "tokenizer.json"))
        if config:
            told = {"id2label": THREE_WAY, "max_position_embeddings": 64}
            (folder / "config.json").write_text(json.dumps(told))
        return folder / "model.onnx"

    return make

"""Tokenizers of whole words and ONNX files that look words up, for the entailment tests."""

SPECIAL = {
    "bert": ["[PAD]", "[UNK]", "[CLS]", "[SEP]"],
    "roberta": ["<s>", "<pad>", "</s>", "<unk>"],
}
FORMS = {
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "roberta": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
}


def word_tokenizer(words, style="bert"):
    """Words, split at spaces and points, with the special tokens of one family."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    special = SPECIAL[style]
    vocabulary = [*special, *words]
    unknown = "[UNK]" if style == "bert" else "<unk>"
    made = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token=unknown)
    )
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    single, pair = FORMS[style]
    made.post_processor = processors.TemplateProcessing(
        single=single,
        pair=pair,
        special_tokens=[(word, vocabulary.index(word)) for word in special],
    )
    made.add_special_tokens(special)
    return made


def lookup_onnx(folder, tokenizer, rows, *, of_text, inputs=("input_ids",)):
    """An ONNX file whose outputs for a word are its row, `rows[None]` for others.

    Args:
        folder: Where it is made, with its tokenizer.
        tokenizer: Whose words.
        rows: Outputs by word.
        of_text: Whether the largest of a text's outputs are given, or each word's.
        inputs: What the model takes.
    """
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    table = numpy.tile(numpy.array(rows[None], "float32"), (tokenizer.get_vocab_size(), 1))
    for word in rows.keys() - {None}:
        table[tokenizer.token_to_id(word)] = rows[word]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["each"], axis=0)]
    shape = ["b", "s", len(rows[None])]
    if of_text:
        nodes.append(helper.make_node("ReduceMax", ["each", "axis"], ["logits"], keepdims=0))
        shape.remove("s")
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(n, TensorProto.INT64, ["b", "s"]) for n in inputs],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, shape)],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(numpy.array([1], "int64"), "axis"),
        ],
    )
    folder.mkdir()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / "model.onnx")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder / "model.onnx"

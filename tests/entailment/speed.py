"""Claims a second and memory of small judges on the CPU: `make bench-entailment`.

The models have the published sizes and random weights: speed and memory do not depend on what a
model has learnt, its verdicts here mean nothing.
"""

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ragaliq.judges.small import EntailmentJudge

# What the published models are: family, then width, layers, heads, inner width, words.
MODELS = {
    "minicheck-roberta": ("roberta", 1024, 24, 16, 4096, 50_265),
    "factcg": ("deberta", 1024, 24, 16, 4096, 128_100),
}
WORDS = [f"word{i}" for i in range(2000)]
CHUNKS = [" ".join(WORDS[i * 150 : i * 150 + 150]) + "." for i in range(4)]  # 600 words
CLAIMS = [" ".join(WORDS[i * 15 : i * 15 + 15]) + "." for i in range(8)]


def build(name: str, folder: Path) -> None:
    import transformers as tf
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    family, width, layers, heads, inner, size = MODELS[name]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = Tokenizer(
        models.WordLevel({w: i for i, w in enumerate([*special, *WORDS])}, unk_token="[UNK]")
    )
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    words.save(str(folder / "tokenizer.json"))
    common = {
        "vocab_size": size,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "pad_token_id": 0,
    }
    if family == "roberta":
        model = tf.RobertaForSequenceClassification(
            tf.RobertaConfig(**common, max_position_embeddings=514)
        )
    else:
        config = tf.DebertaV2Config(
            **common,
            relative_attention=True,
            position_biased_input=False,
            pos_att_type=["p2c", "c2p"],
            position_buckets=256,
            share_att_key=True,
            norm_rel_ebd="layer_norm",
            type_vocab_size=0,
            max_position_embeddings=512,
        )
        model = tf.DebertaV2ForSequenceClassification(config)
    model.save_pretrained(folder)
    if family == "roberta":
        export(folder)


def export(folder: Path) -> None:
    """The same model as an ONNX file, in a folder of its own."""
    import shutil

    import torch
    import transformers as tf

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            kind = tf.AutoModelForSequenceClassification
            self.model = kind.from_pretrained(folder, attn_implementation="eager").eval()

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=ids, attention_mask=mask).logits

    (folder / "onnx").mkdir()
    for each in ("tokenizer.json", "config.json"):
        shutil.copy(folder / each, folder / "onnx" / each)
    names = ["input_ids", "attention_mask", "logits"]
    ids = torch.ones((2, 40), dtype=torch.long)
    torch.onnx.export(
        Logits(),
        (ids, ids),
        str(folder / "onnx" / "model.onnx"),
        input_names=names[:2],
        output_names=names[2:],
        dynamic_axes={name: {0: "batch", 1: "tokens"} for name in names[:2]},
        opset_version=18,
        dynamo=False,
    )
    (folder / "onnx").rename(folder.parent / f"{folder.name}-onnx")


def measure(name: str, folder: str) -> None:
    began = time.perf_counter()
    judge = EntailmentJudge(name, path=folder, device="cpu", batch_size=8)
    loaded = time.perf_counter() - began
    asyncio.run(judge.verify_claims(CLAIMS[:1], CHUNKS[:1]))  # warm
    began = time.perf_counter()
    asyncio.run(judge.verify_claims(CLAIMS, CHUNKS))
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"load": loaded, "rate": len(CLAIMS) / seconds, "memory": memory}))


def main() -> None:
    print(f"{len(CLAIMS)} claims of 15 words over 600 words of context")
    for name in sys.argv[1:] or MODELS:
        with tempfile.TemporaryDirectory() as parent:
            folder = f"{parent}/model"
            Path(folder).mkdir()
            steps = [["build", name, folder], ["measure", name, folder]]
            if MODELS[name][0] == "roberta":
                steps.append(["measure", name, f"{folder}-onnx"])
            for step in steps:
                done = subprocess.run(
                    [sys.executable, __file__, *step], capture_output=True, text=True, check=True
                )
                if step[0] == "measure":
                    found = json.loads(done.stdout.splitlines()[-1])
                    kind = "onnx" if step[2].endswith("-onnx") else "torch"
                    print(
                        f"{name:20} {kind:6} {found['rate']:7.2f} claims/s "
                        f"{found['memory']:7.0f} MiB  loaded in {found['load']:.1f} s",
                        flush=True,
                    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["build", name, folder]:
            build(name, Path(folder))
        case ["measure", name, folder]:
            measure(name, folder)
        case _:
            main()

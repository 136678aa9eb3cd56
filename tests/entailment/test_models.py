"""Real models, made here, behind an entailment judge."""

import pytest

from ragaliq import ConfigurationError
from ragaliq.judges.small import EntailmentJudge
from tiny_models import lookup_onnx

pytestmark = pytest.mark.entailment

CLAIM = "The lamp is in Graz."
CHUNKS = ["The shop is in Graz.", "The lamp is made of gold.", "The lamp is of word."]
FILLER = "The lamp is in the shop. " * 40


@pytest.fixture(params=["bert", "roberta", "onnx"])
def model(request, hugging_face, onnx_file):
    return onnx_file() if request.param == "onnx" else hugging_face(request.param)


async def test_three_way_verdicts_with_the_chunk_they_rest_on(model):
    judge = EntailmentJudge(model)
    supported = await judge.verify_claim(CLAIM, CHUNKS)
    assert (supported.verdict, supported.supporting_chunk_ids) == ("SUPPORTED", [1])
    assert supported.confidence > 0.9
    refuted = await judge.verify_claim(CLAIM, [CHUNKS[0], "The lamp is never made."])
    assert (refuted.verdict, refuted.supporting_chunk_ids) == ("CONTRADICTED", [1])
    unknown = await judge.verify_claim(CLAIM, CHUNKS[:1])
    assert (unknown.verdict, unknown.supporting_chunk_ids) == ("NOT_ENOUGH_INFO", [])


async def test_what_stands_far_behind_the_limit_is_read(model):
    judge = EntailmentJudge(model)
    chunks = [FILLER, FILLER + "It is made of gold. " + FILLER, FILLER]
    verdict = await judge.verify_claim(CLAIM, chunks)
    assert (verdict.verdict, verdict.supporting_chunk_ids) == ("SUPPORTED", [1])
    assert (await judge.verify_claim(CLAIM, [FILLER])).verdict == "NOT_ENOUGH_INFO"


async def test_batches_change_nothing(model):
    claims = [CLAIM, "The shop is in Graz.", "The lamp is made of word."]
    replies = [
        await EntailmentJudge(model, batch_size=size).verify_claims(claims, [*CHUNKS, FILLER])
        for size in (1, 3, 64)
    ]
    assert replies[0] == replies[1] == replies[2]
    assert len(replies[0].verdicts) == 3


@pytest.mark.parametrize("kind", ["bert", "roberta"])
async def test_a_model_in_the_manner_of_minicheck_needs_its_labels_told(hugging_face, kind):
    folder = hugging_face(kind, id2label={0: "LABEL_0", 1: "LABEL_1"})
    with pytest.raises(ConfigurationError, match="'LABEL_0', which says nothing"):
        EntailmentJudge(folder)
    judge = EntailmentJudge(folder, labels=("NOT_ENOUGH_INFO", "SUPPORTED"))
    assert (await judge.verify_claim(CLAIM, CHUNKS)).verdict == "SUPPORTED"
    # Two-way: what is not supported is never called contradicted.
    assert (await judge.verify_claim(CLAIM, ["It is never."])).verdict == "NOT_ENOUGH_INFO"
    with pytest.raises(ConfigurationError, match=r"3 labels .* 2 outputs"):
        EntailmentJudge(folder, labels=("CONTRADICTED", "NOT_ENOUGH_INFO", "SUPPORTED"))


async def test_a_model_with_a_single_output_is_read_by_sigmoid(hugging_face):
    judge = EntailmentJudge(hugging_face(id2label={0: "consistent"}))
    supported = await judge.verify_claim(CLAIM, CHUNKS)
    assert supported.verdict == "SUPPORTED"
    assert supported.confidence == pytest.approx(0.997, abs=0.01)
    assert (await judge.verify_claim(CLAIM, CHUNKS[:1])).verdict == "NOT_ENOUGH_INFO"


def test_a_device_that_is_not_there_is_refused(hugging_face, onnx_file):
    folder = hugging_face()
    for device in ("cuda:7", "no-such-device"):
        with pytest.raises(ConfigurationError, match=f"no device '{device}'"):
            EntailmentJudge(folder, device=device)
    with pytest.raises(ConfigurationError, match=r"no 'cuda' here; use one of .*CPU"):
        EntailmentJudge(onnx_file(), device="cuda")
    assert EntailmentJudge(folder, device="cpu").model == "tiny-bert"


def test_what_is_no_model_is_refused_with_what_is_wanted(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be loaded") as raised:
        EntailmentJudge(tmp_path)
    assert "config.json" in str(raised.value)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    with pytest.raises(ConfigurationError, match=r"no tokenizer\.json"):
        EntailmentJudge(broken)


def test_an_onnx_file_wants_its_labels_and_a_pair_of_texts(onnx_file, tmp_path):
    file = onnx_file(config=False)
    with pytest.raises(ConfigurationError, match="does not name its outputs"):
        EntailmentJudge(file)
    labels = ("CONTRADICTED", "NOT_ENOUGH_INFO", "SUPPORTED")
    assert EntailmentJudge(file, labels=labels, max_tokens=64).model == "model.onnx"
    with pytest.raises(ConfigurationError, match=r"2 labels .* 3 outputs"):
        EntailmentJudge(file, labels=labels[1:])
    file.write_bytes(b"no model")
    with pytest.raises(ConfigurationError, match="cannot be loaded as an ONNX model"):
        EntailmentJudge(file, labels=labels)


def test_an_onnx_file_that_classifies_tokens_is_refused(tokenizer, tmp_path):
    rows = {None: (4, 0), "never": (0, 4)}
    file = lookup_onnx(tmp_path / "tokens", tokenizer, rows, of_text=False)
    with pytest.raises(ConfigurationError, match="not a classifier of whole texts"):
        EntailmentJudge(file, labels=("SUPPORTED", "NOT_ENOUGH_INFO"))


def test_an_onnx_file_with_other_inputs_is_refused(onnx_file):
    file = onnx_file(inputs=("input_ids", "pixel_values"))
    with pytest.raises(ConfigurationError, match="pixel_values"):
        EntailmentJudge(file)

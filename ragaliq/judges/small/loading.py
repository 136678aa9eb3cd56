"""Loads a model from a folder or an ONNX file; what is not as the preset has it is refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, NamedTuple

from ragaliq.errors import ConfigurationError
from ragaliq.judges.resolve import ENV_MODELS
from ragaliq.judges.small.models import (
    ClaimScorer,
    FunctionScorer,
    ModelScorer,
    RunModel,
    labels_from_config,
    labels_from_user,
)
from ragaliq.judges.small.presets import PRESETS, Labels, Preset, other_kind, preset_meant_by

_CLASSIFIER = Preset(name="classifier", labels=None)
_CONFIG = "config.json"
_ONNX = ("model.onnx", "onnx/model.onnx")
_ROBERTAS = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer", "xlm-roberta-xl")


class ModelChoice(NamedTuple):
    """The arguments of an `EntailmentJudge` that say which model it has, and how that is run."""

    model: Any
    path: str | None
    labels: Sequence[str] | None
    device: str | None
    dtype: str | None
    threads: int | None
    batch_size: int
    max_tokens: int | None
    download: bool

    def load(self) -> tuple[Preset, ClaimScorer]:
        """Load and check the model; return it with its preset.

        Raises:
            ConfigurationError: An extra is missing, or the model is not what was asked for; the
                message names what was found and what to do.
        """
        model = self.model
        preset = PRESETS.get(model) if isinstance(model, str) else None
        if preset is None and self.path is not None:
            raise ConfigurationError(
                f"EntailmentJudge: path goes with a preset: {', '.join(PRESETS)}"
            )
        if callable(model):
            if self.labels is not None or self.device is not None:
                raise ConfigurationError(
                    "EntailmentJudge: labels and device are for models, not for a function"
                )
            return _CLASSIFIER, FunctionScorer(model, max_tokens=self.max_tokens)
        if not isinstance(model, str) or not model.strip():
            raise ConfigurationError(
                "EntailmentJudge takes a preset, a folder, an .onnx file, a repository or a "
                f"function, got {type(model).__name__}"
            )
        if preset is None:
            preset, path = _classifier_at(model), model
        else:
            path = self.path or _folder_of(preset)
        return preset, _load(path, preset, self)


def _classifier_at(path: str) -> Preset:
    """Preset for a classifier of two texts that has none."""
    name = Path(path).name
    given = name if Path(path).exists() else path
    if kind := other_kind(given):
        raise ConfigurationError(
            f"{name} {kind}, and EntailmentJudge reads classifiers of two texts: use one of "
            f"{', '.join(PRESETS)}, or pass a function from (context, claim) pairs to chances of "
            "support"
        )
    if meant := preset_meant_by(given):
        raise ConfigurationError(
            f"{name} looks like a model that reads a template of its own; use "
            f"EntailmentJudge({meant!r}, path=...), or rename the folder if it is none"
        )
    return _CLASSIFIER


def _folder_of(preset: Preset) -> str:
    models = os.environ.get(ENV_MODELS)
    if models and (Path(models) / preset.name).exists():
        return str(Path(models) / preset.name)
    raise ConfigurationError(
        f"{preset.name} needs its weights: download {preset.hub} and pass path=FOLDER (--model "
        f"FOLDER), or name the folder {preset.name} inside of ${ENV_MODELS}; "
        f"path={preset.hub!r} with download=True fetches them"
    )


def _load(path: str, preset: Preset, choice: ModelChoice) -> ModelScorer:
    """Load a folder, an `.onnx` file, or a repository on the hub."""
    file = Path(path)
    onnx = file if file.suffix.lower() == ".onnx" else None
    if onnx is not None:
        if not file.is_file():
            raise ConfigurationError(f"there is no file {path}")
        folder = file.parent
    else:
        folder = file if file.exists() else _downloaded(path, download=choice.download)
        if choice.device in (None, "cpu"):
            onnx = next((folder / each for each in _ONNX if (folder / each).is_file()), None)
    name = file.name if file.exists() else path
    config = _read_config(folder)
    _check_architecture(config, preset, name)
    limit = _limit(config, preset, choice.max_tokens, name)
    source = _Source(name, folder, config, preset, choice)
    load = _load_torch if onnx is None else partial(_load_onnx, onnx)
    tokenizer, run, outputs, digest = load(source)
    return ModelScorer(
        name=name,
        preset=preset,
        tokenizer=tokenizer,
        run=run,
        labels=_labels(source, outputs),
        max_tokens=limit,
        pad=int(config.get("pad_token_id") or 0),
        digest=digest,
        batch_size=choice.batch_size,
    )


class _Source(NamedTuple):
    """Model to load, and its settings."""

    name: str
    folder: Path
    config: Mapping[str, Any]
    preset: Preset
    choice: ModelChoice


_Loaded = tuple[Any, RunModel, int | None, Callable[[], str]]
"""A tokenizer, what runs the model, how many outputs it has (None where that is not known yet), and
the digest of its weights."""


def _labels(source: _Source, outputs: int | None) -> Labels:
    """A verdict for each output."""
    name, preset, given = source.name, source.preset, source.choice.labels
    if preset.labels is None:
        if given is None:
            named = source.config.get("id2label") or {}
            # transformers does not write what it calls them by default
            if source.config and not named:
                named = {i: f"LABEL_{i}" for i in range(outputs or 0)}
            given = labels_from_config(named, model=name)
        return labels_from_user(given, outputs=outputs, model=name)
    if given is not None:
        raise ConfigurationError(
            f"EntailmentJudge: {preset.name} has labels of its own; leave labels= out"
        )
    if outputs is not None and outputs != len(preset.labels):
        raise ConfigurationError(
            f"{name} has {outputs} outputs, and {preset.name} has {len(preset.labels)}; "
            f"download {preset.hub}"
        )
    return preset.labels


def _downloaded(repository: str, *, download: bool) -> Path:
    """The folder of a repository, from the local cache unless it may be fetched."""
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(repository, local_files_only=not download))
    except ImportError:
        pass
    except Exception as error:  # noqa: BLE001 - the client's errors have no common base
        if download:
            raise ConfigurationError(
                f"{repository} cannot be downloaded ({type(error).__name__})"
            ) from None
    raise ConfigurationError(
        f"there is no folder {repository}; download the model and name its folder, or pass "
        "download=True to fetch that repository"
    )


def _read_config(folder: Path) -> Mapping[str, Any]:
    path = next((p for p in (folder / _CONFIG, folder.parent / _CONFIG) if p.is_file()), None)
    if path is None:
        return {}
    try:
        stored = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        stored = None
    if not isinstance(stored, dict):
        raise ConfigurationError(f"config.json of {folder.name} is not a JSON object")
    return stored


def _check_architecture(config: Mapping[str, Any], preset: Preset, name: str) -> None:
    found = [str(each) for each in config.get("architectures") or []]
    if preset is _CLASSIFIER:
        if found and not any(each.endswith("ForSequenceClassification") for each in found):
            raise ConfigurationError(
                f"{name} is a {', '.join(found)}, not a classifier of two texts: its answers would "
                "be noise. Use one of the presets, EntailmentJudge(NAME, path=...), or pass a "
                "function"
            )
        return
    if found and not set(found) & set(preset.architectures):
        raise ConfigurationError(
            f"{name} is a {', '.join(found)}, and {preset.name} is a "
            f"{' or '.join(preset.architectures)}; download {preset.hub}"
        )
    named = config.get("id2label")
    if isinstance(named, dict) and preset.labels is not None:
        says_nothing = all(re.fullmatch(r"LABEL_\d+", str(each)) for each in named.values())
        if not says_nothing and labels_from_config(named, model=name) != preset.labels:
            raise ConfigurationError(
                f"{name} names its outputs {', '.join(map(str, named.values()))}, and "
                f"{preset.name} has {', '.join(preset.labels)}; it is another model"
            )


def position_limit(config: Mapping[str, Any]) -> int | None:
    """Tokens for which a model has positions; None where they are relative or not known."""
    limit = config.get("max_position_embeddings")
    kind = config.get("model_type")
    if not isinstance(limit, int) or limit <= 0:
        return None
    if kind == "deberta-v2" and not config.get("position_biased_input", True):
        return None
    if kind in _ROBERTAS:
        # Their positions begin behind the padding's own number.
        padding = config.get("pad_token_id")
        return limit - (padding if isinstance(padding, int) else 1) - 1
    return limit


def _limit(config: Mapping[str, Any], preset: Preset, asked: int | None, name: str) -> int | None:
    hard = position_limit(config)
    if asked is not None and hard is not None and asked > hard:
        raise ConfigurationError(
            f"EntailmentJudge: max_tokens is {asked}, and {name} has positions for {hard} tokens"
        )
    if asked is not None:
        return asked
    trained = config.get("max_position_embeddings") if preset.max_tokens is None else None
    known = [each for each in (hard, preset.max_tokens, trained) if isinstance(each, int)]
    return min(known, default=None)


# An ONNX file with its tokenizer, run by onnxruntime: no torch needed.


def _load_onnx(file: Path, source: _Source) -> _Loaded:
    try:
        import numpy
        import onnxruntime
        import tokenizers
    except ImportError as error:
        raise ConfigurationError(
            f"EntailmentJudge needs {error.name} for an ONNX file; "
            "pip install 'ragaliq[entailment-onnx]'"
        ) from None
    places = (file.parent / "tokenizer.json", file.parent.parent / "tokenizer.json")
    stored = next((place for place in places if place.is_file()), None)
    if stored is None:
        raise ConfigurationError(
            f"there is no tokenizer.json next to {file.name} or one folder up; export it with the "
            "model"
        )
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(stored))
    except Exception as error:  # noqa: BLE001 - the library raises plain Exception
        raise ConfigurationError(
            f"tokenizer.json next to {file.name} cannot be read ({type(error).__name__})"
        ) from None
    known = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
    provider = known.get(source.choice.device or "cpu", source.choice.device)
    if provider not in onnxruntime.get_available_providers():
        raise ConfigurationError(
            f"EntailmentJudge: onnxruntime has no {source.choice.device!r} here; use one of "
            f"{', '.join(onnxruntime.get_available_providers())}"
        )
    options = onnxruntime.SessionOptions()
    if source.choice.threads is not None:
        options.intra_op_num_threads = source.choice.threads
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=[provider])
    except Exception as error:  # noqa: BLE001 - the runtime's errors have no common base
        raise ConfigurationError(
            f"{file.name} cannot be loaded as an ONNX model ({type(error).__name__})"
        ) from None
    inputs = [each.name for each in session.get_inputs()]
    unknown = sorted({*inputs} - {"input_ids", "attention_mask", "token_type_ids"})
    if unknown:
        raise ConfigurationError(
            f"{file.name} wants inputs a pair of texts does not give: {', '.join(unknown)}"
        )
    shape = session.get_outputs()[0].shape
    if len(shape) != 2:
        raise ConfigurationError(
            f"{file.name} is not a classifier of whole texts: its output has {len(shape)} "
            "dimensions, not 2"
        )
    outputs = shape[-1] if isinstance(shape[-1], int) else None

    def run(ids: list[list[int]], mask: list[list[int]], types: list[list[int]]) -> list[Any]:
        columns = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        feed = {each: numpy.array(columns[each], "int64") for each in inputs}
        return list(session.run(None, feed)[0].tolist())

    def digest() -> str:
        with file.open("rb") as opened:
            return file_digest(opened, partial(blake2b, digest_size=8)).hexdigest()

    return tokenizer, run, outputs, digest


# A model loaded with transformers and torch. Code that comes with a model is never run.


def _load_torch(source: _Source) -> _Loaded:
    name, preset = source.name, source.preset
    try:
        import torch
        import transformers
    except ImportError as error:
        raise ConfigurationError(
            f"EntailmentJudge needs {error.name}; pip install 'ragaliq[entailment]', or use an "
            "ONNX file with 'ragaliq[entailment-onnx]'"
        ) from None
    place = _device(torch, source.choice.device)
    kind = getattr(torch, source.choice.dtype, None) if source.choice.dtype else torch.float32
    if not isinstance(kind, torch.dtype):
        raise ConfigurationError(f"EntailmentJudge: torch has no dtype {source.choice.dtype!r}")
    if source.choice.threads is not None:
        torch.set_num_threads(source.choice.threads)
    try:
        stored = source.folder / "tokenizer.json"
        if stored.is_file():
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(stored))
        else:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                str(source.folder), local_files_only=True
            ).backend_tokenizer
        model = _model(transformers, source)
    except ConfigurationError:
        raise
    except Exception as error:  # noqa: BLE001 - what the libraries raise has no common base
        raise ConfigurationError(
            f"{name} cannot be loaded as {preset.name} ({type(error).__name__}); name a folder "
            "with config.json, weights and tokenizer.json"
        ) from None
    model = model.to(device=place, dtype=kind).eval()
    size, known = len(tokenizer.get_vocab()), getattr(model.config, "vocab_size", None)
    if known is not None and size > known:
        raise ConfigurationError(
            f"the tokenizer of {name} has {size} words and the model {known}: they are not of one "
            "model"
        )
    takes_types = int(source.config.get("type_vocab_size") or 0) > 1

    def run(ids: list[list[int]], mask: list[list[int]], types: list[list[int]]) -> list[Any]:
        columns = {"input_ids": ids, "attention_mask": mask}
        if takes_types:
            columns["token_type_ids"] = types
        with torch.inference_mode():
            logits = model(
                **{each: torch.tensor(rows, device=place) for each, rows in columns.items()}
            ).logits
        return list(logits.float().cpu().tolist())

    def digest() -> str:
        found = blake2b(digest_size=8)
        for each, values in sorted(model.state_dict().items()):
            found.update(each.encode())
            plain = values.detach().cpu().contiguous()
            found.update(plain.view(torch.uint8).numpy() if plain.dim() else b"0")
        return found.hexdigest()

    return tokenizer, run, int(model.config.num_labels), digest


def _model(transformers: Any, source: _Source) -> Any:
    """Load a classifier that transformers knows; every weight must be there."""
    kind = transformers.AutoModelForSequenceClassification
    model, info = kind.from_pretrained(
        str(source.folder), local_files_only=True, output_loading_info=True
    )
    wrong = [*info["missing_keys"], *(str(each) for each in info["mismatched_keys"])]
    if wrong:
        raise ConfigurationError(
            f"{source.name} lacks weights ({_some(wrong)}), which would be random: it was not "
            f"trained as a {type(model).__name__}. Use the folder of a model that was"
        )
    return model


def _some(keys: Sequence[str]) -> str:
    shown = ", ".join(sorted(keys)[:3])
    return shown if len(keys) <= 3 else f"{shown} and {len(keys) - 3} more"


def _device(torch: Any, asked: str | None) -> Any:
    if asked is None:
        others = "mps" if torch.backends.mps.is_available() else "cpu"
        asked = "cuda" if torch.cuda.is_available() else others
    try:
        device = torch.device(asked)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ConfigurationError(
            f"EntailmentJudge: there is no device {asked!r} here; use 'cpu'"
        ) from None
    return device

"""Random data and small models for the tutorials of `aws_tutorials.py`, written into the working folder."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aws_tutorial_decoders import DECODERS
from aws_tutorial_models import (
    prepare_bert_benchmark,
    prepare_bert_classifier,
    prepare_bert_encoder,
    prepare_bert_features,
    prepare_clip,
    prepare_detection,
    prepare_distilbert,
    prepare_gpt2_features,
    prepare_llama_folder,
    prepare_resnet,
    prepare_resnet_folder,
    prepare_roberta,
    prepare_t5,
    prepare_vgg,
    prepare_vit,
    prepare_wav2vec2,
    save_word_pieces,
)

VISION = '''
"""Stands for torchvision: random pictures of ten kinds."""
import torch


class MNIST(torch.utils.data.Dataset):
    def __init__(self, root, train, download, transform):
        shapes = torch.randn(10, 1, 28, 28, generator=torch.Generator().manual_seed(5))
        generator = torch.Generator().manual_seed(int(train))
        count = 640 if train else 320
        self.labels = torch.randint(0, 10, (count,), generator=generator)
        self.pictures = shapes[self.labels] + 0.5 * torch.randn(count, 1, 28, 28, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.pictures[index], int(self.labels[index])
'''


def prepare_mlp() -> None:
    """Pictures under the name of torchvision, which the script would download."""
    folder = Path("torchvision")
    (folder / "datasets").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "datasets" / "__init__.py").write_text("")
    (folder / "datasets" / "mnist.py").write_text(VISION)
    (folder / "transforms.py").write_text("def ToTensor():\n    return None\n")


def prepare_trained_mlp() -> None:
    """The same, and the checkpoint of a model that tells the kinds apart, which the other scripts write."""
    import sys

    import torch

    prepare_mlp()
    sys.path.insert(0, "")
    from model import MLP
    from torchvision.datasets.mnist import MNIST

    torch.manual_seed(0)
    model, known = MLP(), MNIST("", True, False, None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        torch.nn.functional.nll_loss(model(known.pictures.flatten(1)), known.labels).backward()
        optimizer.step()
    Path("checkpoints").mkdir()
    torch.save({"state_dict": model.state_dict()}, "checkpoints/checkpoint.pt")


def prepare_bert() -> None:
    """A BERT of two layers in a local folder, and shards of masked sentences."""
    import h5py
    import numpy as np
    import torch
    from transformers import BertConfig, BertForPreTraining

    torch.manual_seed(0)
    config: Any = BertConfig(
        vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64,
    )  # fmt: skip
    BertForPreTraining(config).save_pretrained("model", safe_serialization=False)
    Path("data").mkdir()
    random, count, length, most = np.random.default_rng(0), 16, 32, 20
    for shard in range(4):
        positions = np.stack([random.permutation(np.arange(1, length))[:most] for _ in range(count)])
        positions[:, 5:] = 0
        with h5py.File(f"data/part_training_{shard}.hdf5", "w") as file:
            file["input_ids"] = random.integers(1, 200, (count, length))
            file["input_mask"] = np.ones((count, length), int)
            file["segment_ids"] = random.integers(0, 2, (count, length))
            file["masked_lm_positions"] = positions
            file["masked_lm_ids"] = random.integers(1, 200, (count, most))
            file["next_sentence_labels"] = random.integers(0, 2, count)


def prepare_gpt2() -> None:
    """A tokenizer, a configuration of two layers, and token sequences."""
    import datasets
    import numpy as np
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2TokenizerFast

    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(["hello world"], trainer)
    GPT2TokenizerFast(tokenizer_object=tokenizer, model_max_length=64).save_pretrained("tok")
    random = np.random.default_rng(0)

    def tokens(count: int) -> Any:
        ids = random.integers(0, 300, (count, 32)).tolist()
        columns = {"input_ids": ids, "attention_mask": [[1] * 32] * count, "labels": ids}
        return datasets.Dataset.from_dict(columns)

    datasets.DatasetDict(train=tokens(64), validation=tokens(8)).save_to_disk("data")
    config = {
        "model_type": "gpt2", "n_embd": 48, "n_head": 4, "n_layer": 2, "n_positions": 64, "vocab_size": 320,
        "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
    }  # fmt: skip
    Path("config.json").write_text(json.dumps(config))


def prepare_sentiment() -> None:
    """A BERT for three classes in a folder named as on the hub, and sentences that tell theirs."""
    _save_small_bert(3)
    Path("data").mkdir()
    rows = [f'"{chr(97 + number % 3)} sentence {number}","{number % 3}"' for number in range(24)]
    Path("data/train.csv").write_text("\n".join(['"text","labels"', *rows]) + "\n")


def _save_small_bert(classes: int) -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=save_word_pieces("bert-base-cased", 64), hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64, num_labels=classes,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained("bert-base-cased")


def prepare_glue() -> None:
    """The same model, and pairs of sentences with a label each."""
    _save_small_bert(2)
    for name, count in (("train", 32), ("validation", 8)):
        rows = [
            f'"sentence {number}","{chr(97 + number % 2)} {number}",{number % 2}' for number in range(count)
        ]
        Path(f"{name}.csv").write_text("\n".join(['"sentence1","sentence2","label"', *rows]) + "\n")


def prepare_llama() -> None:
    """The configuration beside the tutorial with two small layers, token sequences, and the CPU's model."""
    import datasets
    import numpy as np

    config = json.loads(Path("tp_zero1_llama_hf_pretrain/7B_config_llama2/config.json").read_text())
    config |= {
        "vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "intermediate_size": 128, "max_position_embeddings": 64,
        "torch_dtype": "float32",
    }  # fmt: skip
    model = Path("modeling_llama_nxd.py").read_text()
    Path("cpu_modeling_llama_nxd.py").write_text(model.replace('device="xla"', 'device="cpu"'))
    Path("config").mkdir()
    Path("config/config.json").write_text(json.dumps(config))
    ids = np.random.default_rng(0).integers(0, 128, (32, 32)).tolist()
    columns = {"input_ids": ids, "attention_mask": [[1] * 32] * 32, "labels": ids}
    datasets.Dataset.from_dict(columns).save_to_disk("data")


def prepare_llama_checkpoint() -> None:
    """A small configuration beside the script, and weights and a tokenizer in the form of Meta's files."""
    import torch

    words = [*"abcdefghijklmnopqrstuvwxyz ", *(f" {number}" for number in range(27, 64))]
    lines = (f"{base64.b64encode(word.encode()).decode()} {rank}\n" for rank, word in enumerate(words))
    Path("tokenizer.model").write_text("".join(lines))
    rows = len(words) + 256
    sizes = {
        "vocab_size": rows, "hidden_size": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16,
        "intermediate_size": 128, "pad_token": len(words) + 4,
    }  # fmt: skip
    text = Path("config.py").read_text().replace("dtype=torch.bfloat16", "dtype=torch.float32")
    for name, size in sizes.items():
        text = re.sub(rf"(\n    {name})=\d+,", rf"\1={size},", text)
    Path("config.py").write_text(text)
    shapes = {
        "attention.wq": (64, 64), "attention.wk": (32, 64), "attention.wv": (32, 64),
        "attention.wo": (64, 64),
        "feed_forward.w1": (128, 64), "feed_forward.w3": (128, 64), "feed_forward.w2": (64, 128),
    }  # fmt: skip
    torch.manual_seed(0)
    weights = {"tok_embeddings.weight": torch.randn(rows, 64) / 5, "norm.weight": torch.ones(64)}
    for layer in range(2):
        names = {name: torch.randn(shape) / 4 for name, shape in shapes.items()}
        names |= {name: torch.ones(64) for name in ("attention_norm", "ffn_norm")}
        weights |= {f"layers.{layer}.{name}.weight": value for name, value in names.items()}
    torch.save(weights, "consolidated.00.pth")


PREPARE: Mapping[str, Callable[[], None]] = {
    "mlp": prepare_mlp,
    "mlp_torchrun": prepare_mlp,
    "mlp_trace": prepare_trained_mlp,
    "bert_pretraining": prepare_bert,
    "zero1_gpt2": prepare_gpt2,
    "hf_bert_single": prepare_sentiment,
    "hf_bert_two_ranks": prepare_sentiment,
    "hf_trainer_glue": prepare_glue,
    "tp_zero1_llama": prepare_llama,
    "clip": prepare_clip,
    "bert_features": prepare_bert_features,
    "distilbert": prepare_distilbert,
    "gpt2_features": prepare_gpt2_features,
    "bert_mrpc": prepare_bert_classifier,
    "nxdi_llama": prepare_llama_folder,
    **{name: decoder.prepare for name, decoder in DECODERS.items()},
    "nxd_llama": prepare_llama_checkpoint,
    "t5": prepare_t5,
    "resnet50": prepare_resnet,
    "roberta": prepare_roberta,
    "vit": prepare_vit,
    "wav2vec2_rope": prepare_wav2vec2,
    "tv_resnet50": prepare_resnet,
    "tv_vgg11": prepare_vgg,
    "inf1_bert": prepare_bert_benchmark,
    "inf1_resnet50": prepare_resnet_folder,
    "inf1_yolo_v4": prepare_detection,
    "inf1_pipeline": prepare_bert_encoder,
}

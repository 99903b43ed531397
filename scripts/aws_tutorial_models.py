"""Models with random weights, tokenizers and pictures, where tutorials of inference would download them."""

from __future__ import annotations

import json
import os
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aws_tutorial_decoders import WORDS, save_decoder
from aws_tutorial_notebooks import declare_vision_operators

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CHARACTERS = string.ascii_letters + string.digits + string.punctuation
PICTURE = (480, 640, 3)
PAIRS = 18
"""So many that more are asked for than wait at once: the tutorial does not wait for the last."""


def save_word_pieces(folder: str, length: int = 512) -> int:
    """Write a tokenizer of single characters into a folder; returns how many tokens it has."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    tokens = [*SPECIAL, *CHARACTERS, *(f"##{character}" for character in CHARACTERS)]
    (Path(folder) / "vocab.txt").write_text("\n".join(tokens))
    options = {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "model_max_length": length}
    (Path(folder) / "tokenizer_config.json").write_text(json.dumps(options))
    return len(tokens)


def _save_encoder(folder: str, model: Any, **sizes: int) -> None:
    """Write a model of a class of transformers with random weights, and its tokenizer, into a folder."""
    import torch

    torch.manual_seed(0)
    model(model.config_class(vocab_size=save_word_pieces(folder), **sizes)).save_pretrained(folder)


def prepare_bert_classifier() -> None:
    """A BERT of two layers that tells paraphrases, in a folder named as on the hub."""
    from transformers import BertForSequenceClassification

    _save_encoder("bert-base-cased-finetuned-mrpc", BertForSequenceClassification, num_hidden_layers=2)


def prepare_bert_benchmark() -> None:
    """The same, and fewer of the pairs of sentences that stand beside the tutorial."""
    prepare_bert_classifier()
    pairs = Path("glue_mrpc_dev.tsv")
    lines = pairs.read_text(encoding="utf-8").splitlines(keepends=True)
    pairs.write_text("".join(lines[: 1 + PAIRS]), encoding="utf-8")


def prepare_bert_encoder() -> None:
    """A BERT-base, in a folder named as on the hub."""
    from transformers import BertModel

    _save_encoder("bert-base-uncased", BertModel)


def prepare_bert_features() -> None:
    """A BERT of two layers, in a folder named as on the hub."""
    from transformers import BertModel

    _save_encoder("bert-base-uncased", BertModel, num_hidden_layers=2)


def prepare_distilbert() -> None:
    """A DistilBERT of two layers, in a folder named as on the hub."""
    from transformers import DistilBertModel

    _save_encoder("distilbert-base-uncased", DistilBertModel, n_layers=2)


CIFAR = '''
"""Stands for torchvision's CIFAR-100: one random picture, and a hundred names."""
import numpy as np
from PIL import Image


class CIFAR100:
    classes = [f"thing {number}" for number in range(100)]

    def __init__(self, root, download, train):
        self.picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)

    def __getitem__(self, index):
        return Image.fromarray(self.picture), 0
'''


def save_byte_pairs(folder: str, ends: Sequence[str] = (), **options: object) -> int:
    """Write a tokenizer of single bytes into a folder; returns how many tokens it has.

    Args:
        folder: Where.
        ends: Ends of words, for each of which every byte has a token.
        options: Of the tokenizer.
    """
    from tokenizers.pre_tokenizers import ByteLevel

    Path(folder).mkdir(parents=True, exist_ok=True)
    letters = sorted(ByteLevel.alphabet())
    tokens = [*letters, *(letter + end for end in ends for letter in letters)]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    (Path(folder) / "vocab.json").write_text(
        json.dumps({token: number for number, token in enumerate(tokens)})
    )
    (Path(folder) / "merges.txt").write_text("#version: 0.2\n")
    (Path(folder) / "tokenizer_config.json").write_text(json.dumps(options))
    return len(tokens)


def prepare_clip() -> None:
    """A CLIP of two layers each in a folder named as on the hub, and one picture instead of CIFAR-100."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    folder = "openai/clip-vit-base-patch32"
    tokens = save_byte_pairs(folder, ["</w>"], tokenizer_class="CLIPTokenizer", model_max_length=77)
    torch.manual_seed(0)
    layers = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    marks = {"vocab_size": tokens, "bos_token_id": tokens - 2, "eos_token_id": tokens - 1}
    vision = {**layers, "image_size": 224, "patch_size": 32}
    config = CLIPConfig(text_config={**layers, **marks}, vision_config=vision, projection_dim=32)
    CLIPModel(config).save_pretrained(folder)
    CLIPImageProcessor().save_pretrained(folder)
    Path("cifar.py").write_text(CIFAR)


def prepare_gpt2_features() -> None:
    """A GPT-2 of two layers in a folder named as on the hub."""
    import torch
    from transformers import GPT2Config, GPT2Model

    tokens = save_byte_pairs("gpt2", tokenizer_class="GPT2Tokenizer", model_max_length=1024)
    torch.manual_seed(0)
    GPT2Model(GPT2Config(vocab_size=tokens, n_layer=2)).save_pretrained("gpt2")


def prepare_t5() -> None:
    """A T5 of two small layers each in a folder named as on the hub, and a tokenizer of characters."""
    import torch
    from sentencepiece import SentencePieceTrainer
    from transformers import T5Config, T5ForConditionalGeneration

    folder = Path("t5-large")
    folder.mkdir()
    SentencePieceTrainer.train(
        sentence_iterator=iter([CHARACTERS, "translate English to German: Lets eat good food."]),
        model_prefix=str(folder / "spiece"), model_type="char", vocab_size=200, hard_vocab_limit=False,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
    )  # fmt: skip
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=256, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)


def prepare_roberta() -> None:
    """A RoBERTa of two layers in a folder named as on the hub."""
    import torch
    from transformers import RobertaConfig, RobertaModel

    tokens = save_byte_pairs(
        "roberta-large", tokenizer_class="RobertaTokenizer", model_max_length=512, pad_token="<|endoftext|>"
    )
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=tokens + 8, num_hidden_layers=2, max_position_embeddings=514, pad_token_id=1
    )
    RobertaModel(config).save_pretrained("roberta-large")


def prepare_vit() -> None:
    """A vision transformer of two layers in a folder named as on the hub, and a picture."""
    import torch
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    folder = "google/vit-base-patch16-224"
    torch.manual_seed(0)
    ViTForImageClassification(ViTConfig(num_hidden_layers=2, num_labels=1000)).save_pretrained(folder)
    ViTImageProcessor().save_pretrained(folder)
    _save_picture("000000039769.jpg")


def prepare_wav2vec2() -> None:
    """A wav2vec 2.0 Conformer of two small layers, with rotary positions, in a folder named as on the hub."""
    import torch
    from transformers import (
        Wav2Vec2ConformerConfig,
        Wav2Vec2ConformerForCTC,
        Wav2Vec2CTCTokenizer,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2Processor,
    )

    folder = Path("facebook/wav2vec2-conformer-rope-large-960h-ft")
    folder.mkdir(parents=True)
    words = {word: number for number, word in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|", *CHARACTERS])}
    (folder / "vocab.json").write_text(json.dumps(words))
    torch.manual_seed(0)
    config = Wav2Vec2ConformerConfig(
        vocab_size=len(words), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, conv_dim=(64,) * 7, position_embeddings_type="rotary",
    )  # fmt: skip
    Wav2Vec2ConformerForCTC(config).save_pretrained(folder)
    tokenizer = Wav2Vec2CTCTokenizer(str(folder / "vocab.json"))
    Wav2Vec2Processor(Wav2Vec2FeatureExtractor(), tokenizer).save_pretrained(folder)


def prepare_resnet() -> None:
    """Weights of ResNet-50 in the file that torchvision looks for first, a picture, and names of classes."""
    _save_vision_model("resnet50", "ResNet50_Weights")


def prepare_vgg() -> None:
    """The same with VGG-11."""
    _save_vision_model("vgg11", "VGG11_Weights")


def _save_vision_model(name: str, weights: str) -> None:
    import torch

    declare_vision_operators()
    from torchvision import models

    torch.manual_seed(0)
    kept = Path(os.environ["TORCH_HOME"]) / "hub" / "checkpoints"
    kept.mkdir(parents=True)
    file = kept / getattr(models, weights).IMAGENET1K_V1.url.rsplit("/", 1)[1]
    torch.save(getattr(models, name)().state_dict(), file)
    _save_picture("000000039769.jpg")
    classes = {str(number): [f"n{number}", f"class {number}"] for number in range(1000)}
    Path("imagenet_class_index.json").write_text(json.dumps(classes))


def prepare_resnet_folder() -> None:
    """The same, with the picture in the folder that the tutorial for Inferentia 1 reads."""
    prepare_resnet()
    folder = Path("torch_neuron_test") / "images"
    folder.mkdir(parents=True)
    _save_picture(str(folder / "kitten_small.jpg"))


def prepare_detection() -> None:
    """Two pictures, and one thing in each, in the form of the COCO data set."""
    Path("val2017").mkdir()
    Path("annotations").mkdir()
    names = ["000000000139.jpg", "000000000285.jpg"]
    for name in names:
        _save_picture(f"val2017/{name}")
    height, width, _ = PICTURE
    images = [
        {"id": number, "file_name": name, "height": height, "width": width}
        for number, name in enumerate(names, 1)
    ]
    found = [
        {
            "id": number, "image_id": number, "category_id": 1, "bbox": [100, 100, 200, 150],
            "area": 30000, "iscrowd": 0,
        }
        for number in range(1, len(names) + 1)
    ]  # fmt: skip
    kinds = [{"id": number, "name": f"kind {number}"} for number in range(1, 91)]
    content = {"info": {}, "images": images, "annotations": found, "categories": kinds}
    Path("annotations/instances_val2017.json").write_text(json.dumps(content))


def _save_picture(file: str) -> None:
    import numpy as np
    from PIL import Image

    Image.fromarray(np.random.default_rng(0).integers(0, 256, PICTURE, dtype=np.uint8)).save(file)


def prepare_llama_folder() -> None:
    """A small Llama with random weights, and a tokenizer of characters, in a folder as of the hub."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128, bos_token_id=1,
        eos_token_id=2,
    )  # fmt: skip
    save_decoder(LlamaForCausalLM(config), "model", 0.3)

"""Random data for the examples of `pytorch_examples.py`, written into the working folder."""

from __future__ import annotations

import sys
import tarfile
from importlib import import_module
from pathlib import Path

import numpy as np
import torch

IMAGES, LABELS = 2051, 2049
"""The first number of MNIST's files."""
PAPERS, WORDS, CITATIONS = 2708, 1433, 5429
"""As many as the graph of citations has that the examples download."""
SIDE = 28
REQUESTS = '''
"""Stands for requests: what is asked for lies here."""
import contextlib
import types


@contextlib.contextmanager
def get(url, stream):
    with open(url.rsplit("/")[-1], "rb") as raw:
        yield types.SimpleNamespace(raw=raw)
'''


def prepare_digits() -> None:
    """Where torchvision looks for MNIST, from examples that keep it beside themselves or one folder up."""
    for root in ("../data", "data"):
        folder = Path(root) / "MNIST" / "raw"
        folder.mkdir(parents=True, exist_ok=True)
        for part, count in (("train", 256), ("t10k", 128)):
            _write_digits(folder, part, count)


def _write_digits(folder: Path, part: str, count: int) -> None:
    chance = np.random.default_rng(0)
    pixels = chance.integers(0, 256, (count, SIDE, SIDE), np.uint8)
    labels = (np.arange(count) % 10).astype(np.uint8)
    for kind, magic, values in (("images-idx3", IMAGES, pixels), ("labels-idx1", LABELS, labels)):
        head = np.array([magic, *values.shape], ">i4").tobytes()
        (folder / f"{part}-{kind}-ubyte").write_bytes(head + values.tobytes())


def prepare_citations() -> None:
    """Papers with words and a kind, and which cites which."""
    chance = np.random.default_rng(0)
    folder = Path("cora")
    folder.mkdir()
    words = chance.random((PAPERS, WORDS)) < 0.0127  # 18 words a paper
    kinds = chance.integers(0, 7, PAPERS)
    lines = [
        "\t".join([str(paper), *map(str, row.astype(int)), f"kind_{kind}"])
        for paper, (row, kind) in enumerate(zip(words, kinds))
    ]
    (folder / "cora.content").write_text("\n".join(lines))
    cited = chance.integers(0, PAPERS, (CITATIONS, 2))
    (folder / "cora.cites").write_text("\n".join(f"{a}\t{b}" for a, b in cited))
    with tarfile.open("cora.tgz", "w:gz") as packed:
        packed.add(folder)
    Path("requests.py").write_text(REQUESTS)


def prepare_photographs() -> None:
    """One kind of pictures, to train and to validate."""
    for part in ("train", "val"):
        _write_pictures(Path("sample") / part / "kind", 8, (256, 256))


def prepare_super_resolution() -> None:
    """Pictures as the Berkeley data set has them."""
    for part in ("train", "test"):
        _write_pictures(Path("dataset") / "BSDS300" / "images" / part, 4, (321, 481))


def _write_pictures(folder: Path, count: int, shape: tuple[int, int]) -> None:
    from PIL import Image  # as the examples that read pictures do; the others need it not

    chance = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        Image.fromarray(chance.integers(0, 256, (*shape, 3), np.uint8)).save(folder / f"{number}.jpg")


def prepare_words() -> None:
    """Sentences of random words."""
    chance = np.random.default_rng(0)
    folder = Path("data") / "wikitext-2"
    folder.mkdir(parents=True, exist_ok=True)
    for part, lines in (("train", 100), ("valid", 30), ("test", 30)):
        rows = chance.integers(0, 200, (lines, 12))
        text = "\n".join(" ".join(f"word{word}" for word in row) for row in rows)
        (folder / f"{part}.txt").write_text(f"{text}\n")


def prepare_play() -> None:
    """A text of which the example reads the twentieth part."""
    line = "Now is the winter of our discontent made glorious summer, and so on.\n"
    Path("play.txt").write_text(line * 60)


def prepare_style() -> None:
    """A picture, and random parameters of the network that paints it in a style."""
    _write_pictures(Path(), 1, (64, 64))
    torch.manual_seed(0)
    sys.path.insert(0, str(Path.cwd() / "neural_style"))
    try:
        network = import_module("transformer_net").TransformerNet()
    finally:
        sys.path.pop(0)
    torch.save(network.state_dict(), "candy.pth")

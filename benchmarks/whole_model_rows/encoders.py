"""Encoders and vision models, traced as users do: `torch_neuronx.trace`, fp32, `--auto-cast matmult`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from benchmarks.whole_model_rows.residual_network import ResNet50
from neuron_tools.compat import torch_neuronx
from neuron_tools.neff import read_neff
from neuron_tools.records.program import Program

LENGTH, IMAGE = 128, (3, 224, 224)
FLAGS = "--auto-cast matmult --target {target}"


def traced(name: str, batch: int, target: str) -> Program:
    """The Program of a model with random weights; the published drivers give zeros as token numbers."""
    model, inputs = _model(name, batch)
    with tempfile.TemporaryDirectory() as folder:
        flags = FLAGS.format(target=target)
        torch_neuronx.trace(model, inputs, compiler_workdir=folder, compiler_args=flags)
        return read_neff(Path(folder) / "graph.neff").program


def _model(name: str, batch: int) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    from transformers import BertConfig, BertModel, ViTConfig, ViTForImageClassification

    if name == "bert":
        tokens = torch.zeros(batch, LENGTH, dtype=torch.int32)
        return BertModel(BertConfig()).eval(), (tokens, tokens, tokens)
    images = (torch.zeros(batch, *IMAGE),)
    if name == "vit":
        return ViTForImageClassification(ViTConfig()).eval(), images
    return ResNet50().eval(), images

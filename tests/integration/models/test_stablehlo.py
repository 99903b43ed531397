"""The StableHLO of whole models, forward and backward, run by XLA, gives what PyTorch computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree

from benchmarks.zoo import case
from benchmarks.zoo.training import train_step
from neuron_tools.frontends.torch_compile import compiled_graph
from neuron_tools.frontends.torch_compile.graph_lowering import graph_text
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from tests.unit.frontends import xla

pytest.importorskip("jax")

FAST = ("llama", "gnn")
SLOW = ("qwen3", "mixtral", "gpt2", "bert", "t5", "vit", "resnet", "whisper", "unet")
RELATIVE, ABSOLUTE = 2e-3, 2e-4


def on_xla(graph, arguments):
    """Results of a graph's StableHLO, by output; None where the module does not make it."""
    stored = [StoredTensor.of(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    portable = graph_text(graph, stored)
    assert portable.missing == ()
    arrays = [
        argument.detach().permute(layout.storage_order).contiguous().numpy()
        for argument, layout in zip(arguments, stored)
        if isinstance(layout, StoredTensor)
    ]
    computed = xla.run(portable.text, arrays)
    return [computed[position] if position >= 0 else None for position in portable.results]


@pytest.fixture
def compared(monkeypatch):
    """Every graph that is compiled in the test is compared where it runs; the numbers of compared results."""
    counts = []

    def run(self, args):
        arguments = [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args]
        results = self._gm.forward(args)
        computed = on_xla(self._graph, arguments)
        expected = pytree.tree_leaves(results, is_leaf=lambda leaf: leaf is None)
        assert len(expected) == len(computed)
        pairs = [(e, c) for e, c in zip(expected, computed) if c is not None and isinstance(e, torch.Tensor)]
        for value, result in pairs:
            np.testing.assert_allclose(result, value.detach().numpy(), rtol=RELATIVE, atol=ABSOLUTE)
        counts.append(len(pairs))
        return results

    monkeypatch.setattr(compiled_graph.CompiledGraph, "__call__", run)
    torch._dynamo.reset()
    yield counts
    torch._dynamo.reset()


@pytest.mark.parametrize("name", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_xla_computes_the_same_forward_and_backward(name, compared):
    model, inputs = case(name).make()
    train_step(model, torch.compile(model, backend="neuron"), inputs)
    assert len(compared) >= 2
    assert sum(compared) > len(list(model.parameters()))

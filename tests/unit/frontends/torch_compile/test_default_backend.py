"""`torch.compile()` without a back end: ours for graphs on the device, PyTorch's own otherwise."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.frontends.torch_compile import backend, default_backend


def test_it_is_the_default_from_the_first_compilation_on_and_leaves_no_trace():
    original = torch.compile
    remove = default_backend.install()
    torch.compile(torch.nn.Identity())
    assert torch.compiler.get_default_backend() is default_backend.choose_backend
    remove()
    assert torch.compile is original
    assert torch.compiler.get_default_backend() == "inductor"


def test_the_users_own_default_is_kept():
    torch.compiler.set_default_backend("eager")
    remove = default_backend.install()
    torch.compile(torch.nn.Identity())
    assert torch.compiler.get_default_backend() == "eager"
    remove()
    torch.compiler.set_default_backend(None)


def negative(tensor):
    return -tensor


@pytest.mark.parametrize("mode", [None, "default", "reduce-overhead"])
def test_inductor_named_for_the_device_is_ours(monkeypatch, mode):
    made = []
    monkeypatch.setattr(backend, "neuron_backend", lambda gm, inputs: made.append(gm) or gm.forward)
    remove = default_backend.install()
    torch._dynamo.reset()
    compiled = torch.compile(negative, backend="inductor", mode=mode)
    assert compiled(torch.ones(3, device="neuron")).tolist() == [-1, -1, -1]
    remove()
    assert len(made) == 1


def test_a_graph_that_makes_its_tensors_on_the_device_is_ours():
    remove = default_backend.install()
    torch._dynamo.reset()
    assert torch.compile(lambda: torch.ones(3, device="neuron") + 1)().tolist() == [2, 2, 2]
    remove()


def test_graphs_elsewhere_go_to_inductor_with_their_mode(monkeypatch):
    made = []

    class Inductor:
        def __init__(self, mode, options, dynamic):
            made.append((mode, options))

        def __call__(self, gm, inputs):
            return gm.forward

    monkeypatch.setattr(torch, "_TorchCompileInductorWrapper", Inductor)
    torch._dynamo.reset()
    compiled = torch.compile(negative, backend=default_backend.choose_backend, mode="max-autotune")
    assert compiled(torch.ones(3)).tolist() == [-1, -1, -1]
    assert made == [("max-autotune", None)]


def test_aot_inductor_is_refused_in_a_sentence():
    layer, example = torch.nn.Linear(4, 4).to("neuron"), torch.ones(1, 4, device="neuron")
    program = torch.export.export(layer, (example,))
    with pytest.raises(NotImplementedError, match=r'torch.compile\(backend="neuron"\)'):
        torch._inductor.aoti_compile_and_package(program)

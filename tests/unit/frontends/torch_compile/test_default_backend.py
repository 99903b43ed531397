"""`torch.compile()` without a back end: ours for graphs on the device, PyTorch's own otherwise."""

from __future__ import annotations

import torch

from neuron_tools.frontends.torch_compile import default_backend


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

"""All hooks go in and come out together."""

from __future__ import annotations

import torch
from torch.autograd.profiler import record_function

from neuron_tools.frontends.torch_hooks.installation import install

# `Module.__call__` is not among them: its replacement stays, for PyTorch's profiler has asked for its code.
PATCHED = [
    (torch.Tensor, "backward"),
    (torch.profiler.profile, "step"),
    (record_function, "__enter__"),
    (record_function, "__exit__"),
    (torch, "compile"),
]


def current():
    return [getattr(owner, name) for owner, name in PATCHED]


def test_uninstalling_restores_what_was_patched(device):
    before = current()
    uninstall = install(device, device.define_module)
    assert all(now is not then for now, then in zip(current(), before))
    uninstall()
    assert all(now is then for now, then in zip(current(), before))


def test_modules_and_optimizers_are_numbered_together(device):
    uninstall = install(device, device.define_module)
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    uninstall()
    assert device.modules == [("Linear", "Linear"), ("optimizer (SGD)", "SGD")]
    assert [entry for entry in device.log if entry[0] != "ALLOCATE"] == [
        ("MODULE_CALL", "Linear"),
        ("RANGE", "Tensor.backward"),
        ("RANGE", "SGD.step"),
    ]

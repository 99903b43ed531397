"""`torch_neuronx` tells which operators ran on the device."""

from __future__ import annotations

import pytest
import torch

from neuron_tools import compat
from neuron_tools.frontends.torch_lowering import intrinsics


@pytest.fixture(scope="module")
def torch_neuronx():
    uninstall = compat.install()
    import torch_neuronx

    yield torch_neuronx
    uninstall()


def test_operators_of_the_device_are_kept_and_what_they_are_made_of(torch_neuronx, capfd):
    weight, bias = torch.ones(3, 4, device="neuron"), torch.ones(3, device="neuron")
    torch_neuronx.clear_op_tracking()
    torch.nn.functional.linear(torch.ones(2, 4, device="neuron"), weight, bias)
    torch.ones(3).cumsum(0)
    ran = torch_neuronx.get_executed_ops()
    assert {"aten::linear", "aten::addmm", "aten::ones"} <= set(ran)
    assert "aten::cumsum" not in ran
    assert ran == sorted(ran)
    torch_neuronx.clear_op_tracking()
    assert torch_neuronx.get_executed_ops() == []
    assert capfd.readouterr() == ("", "")


def test_an_overload_is_named_too(torch_neuronx):
    torch_neuronx.clear_op_tracking()
    torch.ones(2, device="neuron").mul(torch.ones(2, device="neuron"))
    torch.stack([torch.ones(2, device="neuron")])
    assert {"aten::mul", "aten::mul.Tensor", "aten::stack"} <= set(torch_neuronx.get_executed_ops())


def test_a_view_is_no_work_and_a_write_is(torch_neuronx):
    tensor = torch.ones(2, 3, device="neuron")
    torch_neuronx.clear_op_tracking()
    torch.atleast_2d(tensor).unsqueeze(0).reshape(3, 2).contiguous().t()
    ran = torch_neuronx.get_executed_ops()
    assert not {"aten::atleast_2d", "aten::t", "aten::unsqueeze"} & set(ran)
    assert "aten::contiguous" not in ran
    tensor.add_(1)
    assert "aten::add_" in torch_neuronx.get_executed_ops()


def test_what_the_compiler_cannot_lower_has_fallen_back(torch_neuronx, monkeypatch):
    monkeypatch.setattr(intrinsics, "_unlowered", set())
    torch_neuronx.clear_op_tracking()
    torch.ones(4, device="neuron").cumsum(0)
    assert torch_neuronx.get_fallback_ops() == []
    intrinsics.unlowered("aten::cumsum", "a test says so")
    assert torch_neuronx.get_fallback_ops() == ["aten::cumsum"]
    assert "aten::cumsum" not in torch_neuronx.get_executed_ops()


def test_the_process_and_the_device_are_told_by_torchneurons_names(torch_neuronx, monkeypatch):
    from torch_neuronx import neuron, utils

    assert neuron is torch.neuron
    assert torch_neuronx.is_neuron_runtime_initialized()
    monkeypatch.delenv("NEURON_LOGICAL_NC_CONFIG", raising=False)
    assert utils.get_logical_neuron_cores() == utils.get_lnc_setting() == "1"
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    assert utils.get_logical_neuron_cores() == "2"
    monkeypatch.setenv("NEURON_LAUNCH_BLOCKING", "1")
    assert utils.is_sync_mode_enabled()
    assert "histc" in utils.get_neuron_registered_ops()
    assert "bincount" in utils.get_neuron_registered_ops(as_sorted=True, keep_variant=True)

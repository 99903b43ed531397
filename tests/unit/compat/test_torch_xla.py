"""`torch_xla` as training scripts for Trn1 use it, and who may find it."""

import importlib.util
import io
import sys

import pytest
import torch

from neuron_tools import compat


@pytest.fixture(scope="module")
def xm():
    uninstall = compat.install()
    import torch_xla.core.xla_model as model

    yield model
    uninstall()


@pytest.fixture
def not_imported(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "torch_xla"]:
        monkeypatch.delitem(sys.modules, name)
    uninstall = compat.install()
    yield
    uninstall()


def asked_by(file, name):
    """Whether code of a file finds `torch_xla`."""
    names = {"__name__": name, "find_spec": importlib.util.find_spec}
    exec(compile("found = find_spec('torch_xla')", file, "exec"), names)
    return names["found"] is not None


def test_the_program_finds_it_and_a_library_that_only_asks_does_not(not_imported):
    assert asked_by("/home/user/train.py", "__main__")
    library = torch.__file__
    assert not asked_by(library, "accelerate.utils.imports")
    assert asked_by(library, "neuronx_distributed.parallel_layers")


@pytest.mark.parametrize(("switch", "found"), [("0", False), ("1", True)])
def test_a_switch_decides_for_all(not_imported, monkeypatch, switch, found):
    monkeypatch.setenv(compat.SWITCH, switch)
    assert asked_by("/home/user/train.py", "__main__") is found
    assert asked_by(torch.__file__, "accelerate.utils.imports") is found


def test_a_process_alone_is_the_first_of_one(xm):
    import torch_xla.runtime as xr

    assert (xm.get_ordinal(), xm.xrt_world_size(), xm.is_master_ordinal()) == (0, 1, True)
    assert (xr.global_ordinal(), xr.world_size()) == (0, 1)
    assert xm.rendezvous("here", b"x") == [b"x"]


def test_another_device_is_refused_in_a_sentence(xm):
    with pytest.raises(RuntimeError, match="There is no device xla:3: a process has one"):
        xm.xla_device(3)


def test_a_loader_moves_batches_and_ends_steps(xm):
    import torch_xla.debug.metrics as met
    from torch_xla.distributed.parallel_loader import MpDeviceLoader

    met.clear_all()
    loader = MpDeviceLoader([(torch.ones(2), {"y": torch.zeros(1)})] * 3, xm.xla_device())
    devices = [(x.device.type, rest["y"].device.type) for x, rest in loader]
    assert devices == [("xla", "xla")] * 3
    assert met.counter_value("MarkStep") == 3


def test_the_optimizer_step_and_saving(xm):
    device = xm.xla_device()
    parameter = torch.nn.Parameter(torch.ones(3).to(device))
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    parameter.sum().backward()
    xm.optimizer_step(optimizer, barrier=True)
    file = io.BytesIO()
    xm.save({"p": parameter}, file)
    file.seek(0)
    assert torch.load(file)["p"].tolist() == [0.5, 0.5, 0.5]


def test_a_compiled_function_is_a_step_of_its_own(xm):
    import torch_xla
    import torch_xla.debug.metrics as met

    double = torch_xla.compile(lambda tensor: tensor * 2)
    ones = torch.ones(2).to(torch_xla.device())
    met.clear_all()
    assert double(ones).tolist() == [2.0, 2.0]
    assert "UncachedCompile" in met.metrics_report() or "CachedCompile" in met.metrics_report()

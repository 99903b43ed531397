"""`torch_xla` as training scripts for Trn1 use it, and who may find it."""

import ast
import importlib.util
import io
import os
import subprocess
import sys

import pytest
import torch

from neuron_tools import compat
from neuron_tools.frontends.torch_xla import XlaError


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


@pytest.mark.parametrize(
    ("text", "found"), [("import torch\nimport torch_xla.runtime as xr\n", True), ("", False)]
)
def test_libraries_find_it_where_the_program_imports_it_later(
    not_imported, tmp_path, monkeypatch, text, found
):
    program = tmp_path / "train.py"
    program.write_text(text)
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert asked_by(torch.__file__, "accelerate.utils.imports") is found


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


def test_a_process_alone_meets_nobody_also_where_a_test_says_there_is_a_group(xm, monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    assert xm.rendezvous("here", b"x") == [b"x"]
    assert xm.mesh_reduce("here", 3, sum) == 3


@pytest.mark.parametrize(("backend", "found"), [("xla", True), ("gloo", False)])
def test_a_group_of_the_backend_is_one_of_pytorch_xla(xm, tmp_path, backend, found):
    import torch.distributed as dist
    from torch_xla.distributed.xla_backend import ProcessGroupXla

    assert not isinstance(dist.group.WORLD, ProcessGroupXla)
    dist.init_process_group(backend, store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    try:
        assert isinstance(dist.group.WORLD, ProcessGroupXla) is found
    finally:
        dist.destroy_process_group()


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


def test_in_eager_mode_each_operation_is_a_graph_but_in_compiled_functions(xm):
    import torch_xla
    from torch_xla.debug import metrics

    def graphs(function):
        xm.mark_step()
        metrics.clear_all()
        function()
        return sum(metrics.counter_value(name) or 0 for name in ("UncachedCompile", "CachedCompile"))

    values = torch.ones(3).to("xla")
    with torch_xla.experimental.eager_mode_context(True):
        assert graphs(lambda: values * 2 + 1) == 2
        assert graphs(torch_xla.compile(lambda: values * 2 + 1)) == 1
        assert torch_xla.experimental.is_eager_mode()
    assert not torch_xla.experimental.is_eager_mode()


def test_counters_tell_what_was_recorded_and_what_fell_back(xm):
    from torch_xla.debug import metrics

    metrics.clear_all()
    values = torch.tensor([0.0, 2.0]).to("xla") + 1
    assert metrics.counter_value("xla::add") == 1
    assert metrics.executed_fallback_ops() == []
    values.nonzero()
    assert metrics.executed_fallback_ops() == ["aten::nonzero"]
    assert "aten::nonzero" in metrics.short_metrics_report(counter_names=["MarkStep"])


def test_an_nki_kernel_is_an_operation_of_the_step(xm):
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def doubled(given):
        result = nl.ndarray(given.shape, dtype=given.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(given.shape, dtype=given.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=given)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=result, src=tile)
        return result

    value = torch.arange(512, dtype=torch.float32).reshape(128, 4)
    result = doubled(value.to(xm.xla_device()) + 1)
    assert result.device.type == "xla"
    torch.testing.assert_close((result * 3).cpu(), (value + 1) * 6)


def test_closures_of_a_step_run_when_it_has_ended(xm):
    value = torch.ones(3, device=xm.xla_device()) * 2
    seen = []
    xm.add_step_closure(lambda result: seen.append(result.sum().item()), args=(value,))
    assert seen == []
    xm.mark_step()
    assert seen == [6.0]
    xm.mark_step()
    assert seen == [6.0]


def test_a_short_report_tells_what_was_asked_for(xm):
    import torch_xla.debug.metrics as met

    met.clear_all()
    torch.ones(3, device=xm.xla_device()).add_(1)
    xm.mark_step()
    short = met.short_metrics_report(counter_names=["MarkStep"], metric_names=[])
    assert short.splitlines() == ["Counter: MarkStep", "  Value: 1"]
    assert "Counter: MarkStep" in met.metrics_report()


def test_bytes_that_were_copied_are_metrics(xm):
    import torch_xla.debug.metrics as met

    met.clear_all()
    (torch.ones(3, 4).to(xm.xla_device()) + 1).cpu()
    assert met.metric_data("OutboundData")[:2] == met.metric_data("InboundData")[:2] == (1, 48.0)
    assert "Metric: OutboundData\n  TotalSamples: 1\n  Accumulator: 0.05KB" in met.metrics_report()


def test_a_traced_function_is_a_named_range(xm):
    import torch_xla.debug.profiler as xp

    @xp.trace_me("twice")
    def twice(value):
        return value * 2

    with torch.profiler.profile() as profile:
        assert twice(3) == 6
    assert "twice" in {event.key for event in profile.key_averages()}


ASKED_FOR_BF16 = """
import torch
import torch_xla.core.xla_model as xm

value = torch.full((4,), 1.001, device=xm.xla_device())
wide = torch.full((4,), 1.001, dtype=torch.float64, device=xm.xla_device())
print(value.dtype, (value * 1).cpu()[0].item(), (wide * 1).cpu()[0].item())
"""


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("", (1.001, 1.001)),
        ("XLA_USE_BF16", (1.0, 1.0)),
        ("XLA_DOWNCAST_BF16", (1.0, 1.001)),
    ],
)
def test_narrow_types_on_the_device_and_the_programs_own_in_the_program(tmp_path, variable, expected):
    program = tmp_path / "program.py"
    program.write_text(ASKED_FOR_BF16)
    environment = {**os.environ, **({variable: "1"} if variable else {})}
    printed = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    assert printed[0] == "torch.float32"
    assert tuple(map(float, printed[1:])) == pytest.approx(expected, abs=1e-6)


SPAWNS = """
import torch
import torch_xla.core.functions as xf
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_multiprocessing as xmp


def run(index, folder):
    value = torch.full((2,), float(index + 1), device=xm.xla_device())
    total = xm.all_reduce(xm.REDUCE_SUM, value)
    xm.mark_step()
    with open(f"{folder}/{index}", "w") as file:
        print(xm.get_ordinal(), xm.xrt_world_size(), total.cpu().tolist(), file=file)
        print(xm.rendezvous("alone", str(index).encode(), [index]), file=file)
        print(xm.rendezvous("all", str(index).encode(), [1, 0]), file=file)
        for replicas in ([1 - index], [index, 2]):
            try:
                xm.rendezvous("others", b"", replicas)
            except RuntimeError as refused:
                print(refused, file=file)
        print(*through_collectives(index), sep="\\n", file=file)


def through_collectives(index):
    value = torch.tensor([index + 2.0, 3.0], device="xla", requires_grad=True)
    for reduce_type in (xm.REDUCE_SUM, xm.REDUCE_MUL, xm.REDUCE_MAX):
        (gradient,) = torch.autograd.grad(xf.all_reduce(reduce_type, value, 2.0).sum(), value)
        yield gradient.tolist()
    (gradient,) = torch.autograd.grad((xf.all_gather(value) * torch.arange(4.0, device="xla")).sum(), value)
    yield gradient.tolist()
    weights, rows = torch.arange(4.0).view(1, 4), torch.arange(8.0).view(4, 2) + index
    yield xf.distributed_mm(weights[:, 2 * index : 2 * index + 2].to("xla"), rows.to("xla"), 2).tolist()
    yield (weights @ rows).tolist()
    torch.manual_seed(0)
    batches, norm, expected = torch.rand(4, 3, 2), xf.SyncBatchNorm(3).to("xla"), torch.nn.BatchNorm1d(3)
    own = norm(batches[2 * index : 2 * index + 2].to("xla"))
    whole = expected(batches)
    torch.testing.assert_close(own.cpu(), whole[2 * index : 2 * index + 2])
    torch.testing.assert_close(norm.running_mean.cpu(), expected.running_mean)
    biased = (expected.running_var - 0.9) * 7 / 8  # of the eight values of a channel
    torch.testing.assert_close(norm.running_var.cpu() - 0.9, biased)
    own[:, :, 0].square().sum().backward()
    whole[:, :, 0].square().sum().backward()
    total = xm.all_reduce(xm.REDUCE_SUM, norm.weight.grad)
    torch.testing.assert_close(total.cpu(), expected.weight.grad)
    torch.testing.assert_close(norm.eval()(batches.to("xla")).cpu(),
                               torch.nn.functional.batch_norm(batches, *statistics(norm)))


def statistics(norm):
    return norm.running_mean.cpu(), norm.running_var.cpu(), norm.weight.cpu(), norm.bias.cpu()


if __name__ == "__main__":
    xmp.spawn(run, args=("FOLDER",), nprocs=2)
"""


@pytest.mark.slow
def test_spawned_processes_reduce_together(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SPAWNS.replace("FOLDER", str(tmp_path)))
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    for index in range(2):
        total, alone, both, others, absent, *gradients = (tmp_path / str(index)).read_text().splitlines()
        assert total == f"{index} 2 [3.0, 3.0]"
        assert (alone, both) == (f"[b'{index}']", "[b'1', b'0']")
        assert f"ordinal {index} of 2 called rendezvous with the replicas [{1 - index}]" in others
        assert f"with the replicas [{index}, 2]" in absent
        summed, multiplied, largest, gathered, product, expected = map(ast.literal_eval, gradients)
        assert (summed, multiplied) == ([2, 2], [2 * (3 - index), 6])
        assert (largest, gathered) == ([2 * index, 2], [2 * index, 2 * index + 1])
        assert product == expected


def test_wrong_uses_of_collectives_get_one_sentence_each(xm):
    import torch_xla.core.functions as xf

    value = torch.ones(2).to("xla").requires_grad_()
    with pytest.raises(XlaError, match="no reduction 'avg': use one of"):
        xm.all_reduce("avg", value)
    with pytest.raises(XlaError, match='through the reduction "and"'):
        xf.all_reduce(xm.REDUCE_AND, value).sum().backward()
    with pytest.raises(XlaError, match="2 columns for each of 1 ranks and a right side with 3 rows"):
        xf.distributed_mm(torch.ones(1, 2), torch.ones(3, 4))


def _attended(device, kind):
    """Output and gradients of attention, and of a mask that learns."""
    torch.manual_seed(3)
    tensors = [torch.randn(2, 4, 12, 16).to(device).requires_grad_() for _ in range(3)]
    options = {}
    if kind == "causal":
        options["is_causal"] = True
    elif kind != "plain":
        seen = torch.rand(2, 1, 12, 12) > 0.3
        seen[..., 0] = True
        learns = kind == "learning mask"
        options["attn_mask"] = (seen if kind == "seen" else torch.where(seen, 0.5, -2.0)).to(device)
        options["attn_mask"].requires_grad_(learns)
        tensors += [options["attn_mask"]] if learns else []
    output = torch.nn.functional.scaled_dot_product_attention(*tensors[:3], **options)
    output.square().sum().backward()
    return [output.detach().cpu(), *(tensor.grad.cpu() for tensor in tensors)]


@pytest.mark.parametrize("kind", ["plain", "causal", "seen", "added", "learning mask"])
def test_attention_is_the_cpus(xm, kind):
    for found, expected in zip(_attended(xm.xla_device(), kind), _attended("cpu", kind), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_attention_in_inference_mode_is_the_cpus(xm):
    tensors = [torch.randn(2, 4, 12, 16) for _ in range(3)]
    attend = torch.nn.functional.scaled_dot_product_attention
    with torch.inference_mode():
        found = attend(*(tensor.to(xm.xla_device()) for tensor in tensors)).cpu()
    torch.testing.assert_close(found, attend(*tensors), rtol=1e-4, atol=1e-5)


def test_random_numbers_go_on_behind_a_fork_as_before_it(xm):
    def drawn():
        return torch.rand(3, device="xla").tolist()

    torch.manual_seed(0)
    with xm.fork_rng():
        inside = drawn()
    assert drawn() == inside
    torch.manual_seed(0)
    with xm.fork_rng(enabled=False):
        drawn()
    assert drawn() != inside


def test_random_numbers_go_on_from_a_state(xm):
    xm.set_rng_state(1234)
    assert xm.get_rng_state() == 1234
    first = torch.randn(3, device=xm.xla_device())
    state = xm.get_rng_state()
    expected = torch.randn(3, device=xm.xla_device())
    xm.set_rng_state(state)
    assert torch.equal(torch.randn(3, device=xm.xla_device()).cpu(), expected.cpu())
    assert not torch.equal(first.cpu(), expected.cpu())
    xm.set_rng_state(1234)
    assert torch.equal(torch.randn(3, device=xm.xla_device()).cpu(), first.cpu())

"""`torch_xla.distributed.spmd` as programs use it, and what it says of wrong uses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuron_tools import compat
from neuron_tools.compat.absent import AbsentError
from neuron_tools.frontends.torch_xla import XlaError, spread, sync


@pytest.fixture
def xs(monkeypatch):
    uninstall = compat.install()
    monkeypatch.setattr(spread, "_on", [False])
    monkeypatch.setenv("XLA_USE_SPMD", "0")
    monkeypatch.setattr(spread, "core_count", lambda: 2)
    import torch_xla.distributed.spmd as xs
    import torch_xla.runtime as xr

    assert not xr.is_spmd()
    xr.use_spmd()
    assert xr.is_spmd()
    assert xr.global_runtime_device_count() == xr.addressable_runtime_device_count() == 2
    assert xr.global_device_count() == xr.addressable_device_count() == xr.local_device_count() == 1
    yield xs
    sync()
    uninstall()


@pytest.fixture
def mesh(xs):
    return xs.Mesh(np.arange(2), (2, 1), ("data", "model"))


def test_the_parts_of_a_tensor_can_be_read(xs, mesh):
    values = torch.arange(8.0).reshape(4, 2)
    tensor = values.to("xla")
    sharded = xs.mark_sharding(tensor, mesh, ("data", "model"))
    assert isinstance(sharded, xs.XLAShardedTensor)
    assert sharded.sharding_type is xs.ShardingType.TILED
    assert [shard.data.tolist() for shard in sharded.local_shards] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert [shard.shard_device for shard in sharded.local_shards] == ["NEURON:0", "NEURON:1"]
    sharded.load_local_shards_(sharded.local_shards)
    assert torch.equal(tensor.cpu(), values)


def test_parts_are_as_large_as_the_largest_and_loaded_without_what_is_behind_them(xs, mesh):
    sharded = xs.mark_sharding(torch.arange(3.0).to("xla"), mesh, ("data",))
    first, last = sharded.local_shards
    assert (first.data.tolist(), last.data.tolist()) == ([0, 1], [2, 0])
    assert last.unpadded_data.tolist() == [2]
    for shard in (first, last):
        shard.data += 5
    sharded.load_local_shards_([first, last])
    assert sharded.cpu().tolist() == [5, 6, 7]
    last.data = torch.ones(3)
    with pytest.raises(XlaError, match=r"Part 1 has the shape \[3\] and not \[2\]"):
        sharded.load_local_shards_([first, last])
    whole = xs.mark_sharding(torch.ones(4).to("xla"), mesh, (None,))
    with pytest.raises(XlaError, match="no parts to load"):
        whole.load_local_shards_(whole.local_shards)


def test_what_lies_in_parts_is_marked_anew_only_where_it_is_cleared_or_moved(xs, mesh):
    tensor = torch.ones(4, 2).to("xla")
    xs.mark_sharding(tensor, mesh, ("data", None))
    xs.mark_sharding(tensor, mesh, ("data", None))
    with pytest.raises(XlaError, match="clear_sharding first"):
        xs.mark_sharding(tensor, mesh, (None, "data"))
    moved = xs.annotate_custom_sharding(tensor, mesh, (None, "data"))
    assert moved.lazy.sharding == tensor.lazy.sharding == mesh.sharding((None, "data"))
    assert torch.equal(moved.cpu(), torch.ones(4, 2))
    xs.clear_sharding(tensor)
    xs.mark_sharding(tensor, mesh, ("data", None))


def test_tensors_are_cut_on_their_way_to_the_device(xs, mesh):
    import torch_xla.core.xla_model as xm

    spec = xs.ShardingSpec(mesh, ("data", None))
    rows, labels = xm.send_cpu_data_to_device(
        [torch.ones(4, 2), torch.ones(4)], xm.xla_device(), input_sharding=spec
    )
    assert (rows.lazy.sharding, labels.lazy.sharding) == (mesh.sharding(("data", None)), None)


def test_a_machines_own_batch_is_shared_out_equally(xs, mesh):
    batch = torch.ones(3, 2).to("xla")
    with pytest.raises(XlaError, match="batch of 3 is no multiple of this machine's 2 cores"):
        xs.ShardingSpec(mesh, ("data", None), minibatch=True).apply(batch)
    xs.ShardingSpec(mesh, ("data", None)).apply(batch)
    with pytest.raises(XlaError, match="for 1 dimensions and the tensor has 0"):
        xs.ShardingSpec(mesh, ("data",), minibatch=True).apply(torch.ones(()).to("xla"))


def test_axes_by_name_by_number_and_together(xs):
    mesh = xs.Mesh(np.arange(8), (2, 2, 2), ("x", "y", "z"))
    assert mesh.sharding(("y", None)) == mesh.sharding((1, None))
    assert mesh.sharding((("x", "z"), None)).text == (
        "{devices=[4,1,2]0,2,1,3,4,6,5,7 last_tile_dim_replicate}"
    )


def test_a_tensor_can_be_whole_again(xs, mesh):
    tensor = torch.ones(4, 2).to("xla")
    xs.mark_sharding(tensor, mesh, ("data", None))
    assert xs.wrap_if_sharded(tensor) is not tensor
    xs.clear_sharding(tensor)
    assert xs.wrap_if_sharded(tensor) is tensor


def test_a_gradient_lies_as_its_tensor_does(xs, mesh):
    weight = torch.ones(4, 2).to("xla").requires_grad_()
    marked = xs.xla_sharding.mark_sharding_with_gradients(weight, mesh, ("data", None))
    (marked * 3).sum().backward()
    assert weight.grad.lazy.sharding == marked.lazy.sharding == mesh.sharding(("data", None))
    assert torch.equal(weight.grad.cpu(), torch.full((4, 2), 3.0))


def test_the_patched_linear_layer_computes_what_the_layer_does(xs):
    layer, rows = torch.nn.Linear(4, 3), torch.rand(2, 5, 4)
    expected = layer(rows)
    expected.sum().backward()
    gradient, layer.weight.grad = layer.weight.grad, None
    result = xs.xla_sharding.apply_xla_patch_to_nn_linear(layer)(rows)
    result.sum().backward()
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(layer.weight.grad, gradient)


def test_batches_are_cut_where_they_have_as_many_dimensions(xs, mesh):
    from torch_xla.distributed.parallel_loader import MpDeviceLoader

    batches = [{"rows": torch.ones(4, 2), "labels": torch.ones(4)}]
    cut = xs.ShardingSpec(mesh, ("data", None))
    (one,) = MpDeviceLoader(batches, "xla", input_sharding=cut)
    assert one["rows"].lazy.sharding == mesh.sharding(("data", None))
    assert one["labels"].lazy.sharding is None
    by_key = {"labels": xs.ShardingSpec(mesh, ("data",)), "rows": None}
    (one,) = MpDeviceLoader(batches, "xla", input_sharding=by_key)
    with pytest.raises(XlaError, match=r"the keys \['rows'\] and the batch has \['labels', 'rows'\]"):
        list(MpDeviceLoader(batches, "xla", input_sharding={"rows": cut}))
    with pytest.raises(XlaError, match="the batch is none"):
        list(MpDeviceLoader([torch.ones(2)], "xla", input_sharding=by_key))
    with pytest.raises(XlaError, match="got a Mesh: give a ShardingSpec"):
        list(MpDeviceLoader(batches, "xla", input_sharding=mesh))
    assert (one["rows"].lazy.sharding, one["labels"].lazy.sharding) == (None, mesh.sharding(("data",)))


def test_parameters_of_a_wrapped_module_lie_in_parts(xs):
    from torch_xla.experimental.spmd_fully_sharded_data_parallel import SpmdFullyShardedDataParallel

    mesh = xs.get_1d_mesh("fsdp")
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).to("xla")
    wrapped = SpmdFullyShardedDataParallel(model, mesh=mesh)
    output = wrapped(torch.ones(2, 4).to("xla"))
    assert wrapped.module is model
    assert wrapped[0].weight.lazy.sharding == output.lazy.sharding == mesh.sharding(("fsdp", None))
    assert wrapped[1].bias.lazy.sharding == mesh.sharding(("fsdp",))
    with pytest.raises(XlaError, match="wrapped already"):
        SpmdFullyShardedDataParallel(wrapped, mesh=mesh)
    with pytest.raises(XlaError, match="A ModuleList has no forward"):
        SpmdFullyShardedDataParallel(torch.nn.ModuleList([torch.nn.Linear(4, 4)]), mesh=mesh)
    with pytest.raises(XlaError, match="extra_data_axis is 'rows'"):
        SpmdFullyShardedDataParallel(torch.nn.Linear(4, 4), mesh=mesh, extra_data_axis="rows")
    with pytest.raises(XlaError, match="There is no mesh"):
        SpmdFullyShardedDataParallel(torch.nn.Linear(4, 4))
    with pytest.raises(XlaError, match="name the one to cut along 'fsdp'"):
        SpmdFullyShardedDataParallel(model, mesh=xs.get_1d_mesh("data"))


def test_parameters_are_cut_along_their_longest_dimension_and_chosen_modules_wrapped(xs, monkeypatch):
    from torch_xla.distributed.fsdp.wrap import always_wrap_policy
    from torch_xla.experimental.spmd_fully_sharded_data_parallel import SpmdFullyShardedDataParallel

    mesh = xs.get_1d_mesh("fsdp")
    monkeypatch.setattr(xs.xla_sharding, "_global_mesh", [mesh])
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(4, 4))
    wrapped = SpmdFullyShardedDataParallel(model, auto_wrap_policy=always_wrap_policy)
    assert isinstance(wrapped[0], SpmdFullyShardedDataParallel)
    assert wrapped[0].module.weight.lazy.sharding == mesh.sharding((None, "fsdp"))
    assert wrapped[1].module.weight.lazy.sharding == mesh.sharding(("fsdp", None))


def test_wrong_uses_get_one_sentence_each(xs, mesh, monkeypatch):
    tensor = torch.ones(4, 2).to("xla")
    for cores, shape, names, sentence in (
        ([0, 1, 2], (2, 1), (), "let the product of its extents be"),
        ([0, 0], (2, 1), (), "stands twice"),
        ([0, 1], (2, 1), ("data",), "needs 2 different names"),
        ([0, 1], (2, 1), ("data", "model", "data"), "needs 2 different names"),
    ):
        with pytest.raises(XlaError, match=sentence):
            xs.Mesh(cores, shape, names)
    for spec, sentence in (
        (("data",), "give one entry a dimension"),
        (("data", "data"), "twice"),
        (("rows", None), "no axis 'rows'"),
        ((1.5, None), "no axis 1.5"),
        (("data", None, None), "is for 3 dimensions and the tensor has 2"),
        ("data", "takes a tensor, a Mesh and a tuple"),
    ):
        with pytest.raises(XlaError, match=sentence):
            xs.mark_sharding(tensor, mesh, spec)
    with pytest.raises(XlaError, match="move it with"):
        xs.mark_sharding(torch.ones(4, 2), mesh, ("data", None))
    with pytest.raises(XlaError, match="use all of them"):
        xs.mark_sharding(tensor, xs.Mesh(range(4), (4, 1)), (0, None))
    with pytest.raises(XlaError, match="this process has 0 to 1"):
        xs.mark_sharding(tensor, xs.Mesh([5, 6], (2, 1)), (0, None))
    with pytest.raises(XlaError, match="must have as many axes"):
        xs.HybridMesh(ici_mesh_shape=(2, 1), dcn_mesh_shape=(1,))
    with pytest.raises(XlaError, match="got 0 parts for 2 cores"):
        xs.mark_sharding(tensor, mesh, ("data", None)).load_local_shards_([])
    with pytest.raises(AbsentError, match="say with mark_sharding how"):
        xs.xla_sharding.auto_sharding(tensor)
    monkeypatch.setattr(spread, "_on", [False])
    with pytest.raises(XlaError, match="use_spmd"):
        xs.mark_sharding(tensor, mesh, ("data", None))


def test_a_compiler_that_chooses_and_several_processes_are_refused(xs, monkeypatch):
    import torch_xla.runtime as xr

    with pytest.raises(XlaError, match="without auto"):
        xr.use_spmd(auto=True)
    monkeypatch.setattr(xr, "world_size", lambda: 2)
    with pytest.raises(XlaError, match="start it without torchrun"):
        xr.use_spmd()


def test_each_core_computes_with_its_own_part(xs, mesh):
    xs.set_global_mesh(mesh)
    values, weights = torch.arange(12.0).reshape(4, 3), torch.arange(6.0).reshape(3, 2)
    part = xs.enable_manual_sharding(values.to("xla"), ("data", None))
    assert (part.shape, part.sharding_type, part.sharding_spec) == (
        (2, 3), xs.ShardingType.MANUAL, "{manual}",
    )  # fmt: skip
    sums = (part @ weights.to("xla")).cumsum(0)
    sums += torch.ones(2).to("xla")
    whole = xs.disable_manual_sharding(sums, ("data", None), (4, 2))
    expected = (values @ weights).reshape(2, 2, 2).cumsum(1).reshape(4, 2) + 1
    assert torch.equal(whole.global_tensor.cpu(), expected)


def test_parts_by_hand_are_padded_and_what_stands_behind_them_is_left_out(xs, mesh):
    part = xs.enable_manual_sharding(torch.ones(3).to("xla"), ("data",), mesh=mesh)
    whole = xs.disable_manual_sharding(part.sum(0, keepdim=True), ("data",), (2,), mesh=mesh)
    assert whole.cpu().tolist() == [2, 1]
    again = xs.enable_manual_sharding(torch.ones(3).to("xla"), ("data",), mesh=mesh) + 1
    assert xs.disable_manual_sharding(again, ("data",), (3,), mesh=mesh).cpu().tolist() == [2, 2, 2]


def test_wrong_uses_of_parts_by_hand_get_one_sentence_each(xs, mesh):
    tensor = torch.ones(4, 2).to("xla")
    with pytest.raises(XlaError, match="no core's own part"):
        xs.disable_manual_sharding(tensor, ("data", None), (4, 2), mesh=mesh)
    part = xs.enable_manual_sharding(tensor, ("data", None), mesh=mesh)
    with pytest.raises(XlaError, match="each core's own part already"):
        xs.enable_manual_sharding(part, ("data", None), mesh=mesh)
    with pytest.raises(XlaError, match="before looking at it"):
        part.cpu()
    with pytest.raises(XlaError, match="write each core's own part to a whole tensor"):
        torch.zeros(2, 2).to("xla").add_(part)
    with pytest.raises(XlaError, match=r"of \[8, 2\] have \[4, 2\]"):
        xs.disable_manual_sharding(part, ("data", None), (8, 2), mesh=mesh)
    with pytest.raises(XlaError, match=r"parts have 2 dimensions, and \[4, 2, 1\] is"):
        xs.disable_manual_sharding(part, ("data", None), (4, 2, 1), mesh=mesh)
    for say in (xs.mark_sharding, xs.annotate_custom_sharding):
        with pytest.raises(XlaError, match="own part already"):
            say(part, mesh, ("data", None))
    with pytest.raises(XlaError, match="own part already"):
        xs.clear_sharding(part)
    with pytest.raises(XlaError, match="own part already"):
        xs.shard_as(part, torch.zeros(2, 2).to("xla"))
    sync()
    with pytest.raises(XlaError, match="before mark_step"):
        part + 1


def test_tensors_that_lie_alike_keep_their_values(xs, mesh):
    first = xs.mark_sharding(torch.ones(4).to("xla"), mesh, ("data",))
    ones, others = xs.shard_as({"a": first}, {"a": torch.zeros(4).to("xla")})
    assert (ones["a"] + others["a"]).cpu().tolist() == [1] * 4
    with pytest.raises(XlaError, match="two of one structure"):
        xs.shard_as([first], first)
    with pytest.raises(XlaError, match=r"shapes \[4\] and \[4, 1\] cannot lie alike"):
        xs.shard_as(first, torch.zeros(4, 1).to("xla"))


def test_dtensors_words_say_how_tensors_lie(xs):
    from torch.distributed.tensor import (
        Partial,
        Replicate,
        Shard,
        distribute_module,
        distribute_tensor,
        init_device_mesh,
    )

    values, mesh = torch.arange(8.0).reshape(4, 2), init_device_mesh("xla", (2,), mesh_dim_names=("data",))
    tensor = distribute_tensor(values, mesh, [Shard(0)])
    assert (tensor.placements, tensor.device_mesh.shape) == ((Shard(0),), (2,))
    assert [shard.data.tolist() for shard in tensor.local_shards] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    own = xs.XLAShardedTensor(tensor, requires_grad=True)
    (own * 2).sum().backward()
    assert torch.equal(own.grad.cpu(), torch.full_like(values, 2))
    aside = tensor.redistribute(mesh, [Shard(1)], async_op=True)
    assert (aside.placements, tensor.placements) == ((Shard(1),), (Shard(0),))
    assert aside.local_shards[0].data.tolist() == [[0], [2], [4], [6]]
    whole = tensor.redistribute(mesh, [Replicate()])
    assert (whole.sharding_type, whole.global_tensor) == (xs.ShardingType.REPLICATED, tensor.global_tensor)
    assert whole.placements == tensor.placements == (Replicate(),)
    cut = distribute_tensor(values, mesh, [Shard(0)])
    assert cut.placements == (Shard(0),)
    xs.annotate_custom_sharding(cut.global_tensor, xs.get_1d_mesh(), (None, None))
    assert cut.placements == (Replicate(),)
    with pytest.raises(XlaError, match="use Shard or Replicate"):
        tensor.redistribute(mesh, [Partial()])
    with pytest.raises(XlaError, match="1 axes and got 2 placements"):
        distribute_tensor(values, mesh, [Shard(0), Shard(1)])
    with pytest.raises(XlaError, match="has 2"):
        distribute_tensor(values, mesh, [Shard(2)])
    with pytest.raises(XlaError, match="no placements"):
        (tensor + 1).placements  # noqa: B018  # asking is what is refused

    weight = distribute_tensor(values.clone().requires_grad_(), mesh, [Shard(0)])
    (weight * 3).sum().backward()
    assert torch.equal(weight.grad.cpu(), torch.full_like(values, 3))
    with pytest.raises(XlaError, match="to whose operands no gradient would pass"):
        distribute_tensor(weight * 3, mesh, [Shard(0)])

    module = torch.nn.Linear(2, 4).to("xla")
    distribute_module(
        module,
        mesh,
        lambda name, inner, mesh: distribute_tensor(inner.weight, mesh, [Shard(0)]),
        lambda inputs, mesh: distribute_tensor(inputs[0], mesh, [Shard(0)]),
        lambda module, outputs, mesh: outputs + 1,
    )
    assert module.weight.lazy.sharding.counts == (2, 1)
    expected = torch.nn.functional.linear(values, module.weight.cpu(), module.bias.cpu()) + 1
    torch.testing.assert_close(module(values.to("xla")).cpu(), expected)


def test_two_axes_of_a_mesh_cut_one_dimension(xs):
    from torch.distributed.tensor import Shard
    from torch_xla.distributed.spmd.placements import convert_to_xla_partition_spec, placements_of

    spec = convert_to_xla_partition_spec(torch.ones(4, 2), [Shard(0), Shard(-1), Shard(0)])
    assert spec == ((0, 2), 1)
    assert placements_of((2, 2, 2), spec) == (Shard(0), Shard(1), Shard(0))

"""Schemes that split the batch: every rank has, or gathers, all parameters."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor import DeviceMesh, Partial, Replicate, Shard, distribute_tensor
from torch.nn.utils.parametrize import register_parametrization

from tests.integration.distributed.training.model import Block, Model, Training, make_model, mine, train

MIXED = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


def ddp(**options: object) -> Training:
    model = nn.parallel.DistributedDataParallel(make_model().to("neuron"), **options)
    return train(model, mine, model.named_parameters)


def ddp_static() -> Training:
    return ddp(static_graph=True, gradient_as_bucket_view=True, bucket_cap_mb=0.01)


def ddp_unused() -> Training:
    return ddp(find_unused_parameters=True)


def fsdp1() -> Training:
    model = FullyShardedDataParallel(
        make_model().to("neuron"), auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=True,
        device_id=torch.device("neuron", torch.neuron.current_device()),
    )  # fmt: skip

    def named() -> Iterator[tuple[str, torch.Tensor]]:
        has_gradients = any(each.grad is not None for each in model.parameters())
        with FullyShardedDataParallel.summon_full_params(model, with_grads=has_gradients):
            yield from model.named_parameters()

    return train(model, mine, named)


def sharded(model: Model, **options: object) -> Model:
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
    return model


def fsdp2(*, checkpointed: bool = False, compiled: bool = False, **options: object) -> Training:
    model = make_model().to("neuron")
    if checkpointed:
        apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, Block))
    if compiled:
        for block in model.blocks:
            block.compile(backend="neuron")
    sharded(model, **options)
    return train(model, mine, model.named_parameters)


def fsdp2_not_resharded() -> Training:
    return fsdp2(reshard_after_forward=False)


def hsdp() -> Training:
    size = dist.get_world_size()
    return fsdp2(mesh=init_device_mesh("neuron", (2, size // 2), mesh_dim_names=("replicate", "shard")))


def checkpointed() -> Training:
    """Saved by all ranks after training, loaded into a new model."""
    import torch.distributed.checkpoint as checkpoint

    model = sharded(make_model().to("neuron"))
    trained = train(model, mine, model.named_parameters)
    folder = [tempfile.mkdtemp()] if dist.get_rank() == 0 else [""]
    dist.broadcast_object_list(folder, 0)
    checkpoint.save(model.state_dict(), checkpoint_id=Path(folder[0]))
    torch.manual_seed(99)
    other = sharded(Model().to("neuron"))
    state = other.state_dict()
    checkpoint.load(state, checkpoint_id=Path(folder[0]))
    other.load_state_dict(state)
    again = get_model_state_dict(other)
    loaded = {name: each.full_tensor().cpu() for name, each in again.items()}
    return Training(trained.losses, trained.gradients, loaded)


class Gathered(nn.Module):
    """A parameter gathered where it is used; its gradient is scattered again, as a mean."""

    def forward(self, split: torch.Tensor) -> torch.Tensor:
        return split.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial("avg")])


def simple_fsdp(model: Model, mesh: DeviceMesh) -> Model:
    """Full sharding written in DTensors, which a compiler sees through: no hooks, no streams."""
    for module in list(model.modules()):
        for name, parameter in list(module.named_parameters(recurse=False)):
            split = distribute_tensor(parameter.data, mesh, [Shard(0)])
            module.register_parameter(name, nn.Parameter(split))
            register_parametrization(module, name, Gathered(), unsafe=True)
    return model


def simply_sharded(*, compiled: bool) -> Training:
    mesh = init_device_mesh("neuron", (dist.get_world_size(),))
    model: nn.Module = simple_fsdp(make_model().to("neuron"), mesh)
    with contextlib.ExitStack() as stack:
        if compiled:
            model = torch.compile(model, backend="neuron", fullgraph=True)
            stack.callback(torch._dynamo.reset)
        return train(model, mine, model.named_parameters)


def compiled_ddp() -> Training:
    model = nn.parallel.DistributedDataParallel(make_model().to("neuron"))
    return train(torch.compile(model, backend="neuron"), mine, model.named_parameters)

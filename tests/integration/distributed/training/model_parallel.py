"""Schemes that split the model or the sequence."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DeviceMesh, DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import context_parallel as split_context
from torch.distributed.tensor.experimental._attention import context_parallel_unshard, set_rotate_method
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from tests.integration.distributed.training.data_parallel import sharded
from tests.integration.distributed.training.model import (
    HEADS,
    SEQUENCE,
    Model,
    Training,
    batches,
    everything,
    gradients_of,
    loss_of,
    make_model,
    mean,
    optimizer_of,
    reference,
    train,
    whole,
)


def tensor_parallel_model(model: Model, mesh: DeviceMesh) -> Model:
    plan = {
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.out": RowwiseParallel(),
        "up": ColwiseParallel(),
        "down": RowwiseParallel(),
    }
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    return model


def tensor_parallel(*, compiled: bool = False) -> Training:
    mesh = init_device_mesh("neuron", (dist.get_world_size(),))
    model = tensor_parallel_model(make_model().to("neuron"), mesh)
    run = torch.compile(model, backend="neuron") if compiled else model
    return train(run, everything, model.named_parameters)


def sequence_parallel() -> Training:
    mesh = init_device_mesh("neuron", (dist.get_world_size(),))
    model = make_model().to("neuron")
    rows = {"output_layouts": Shard(1)}
    gathered = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    parallelize_module(
        model, mesh, {"embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))}
    )
    for block in model.blocks:
        plan = {
            "attention_norm": SequenceParallel(),
            "attention": gathered,
            "attention.query": ColwiseParallel(),
            "attention.key": ColwiseParallel(),
            "attention.value": ColwiseParallel(),
            "attention.out": RowwiseParallel(**rows),
            "norm": SequenceParallel(),
            "up": ColwiseParallel(input_layouts=Shard(1)),
            "down": RowwiseParallel(**rows),
        }
        parallelize_module(block, mesh, plan)
    blocks_out = PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate())
    parallelize_module(model, mesh, {"blocks": blocks_out})
    return train(model, everything, model.named_parameters)


def two_dimensional() -> Training:
    """Tensor parallel inside pairs, fully sharded across them."""
    size = dist.get_world_size()
    mesh = init_device_mesh("neuron", (size // 2, 2), mesh_dim_names=("data", "tensor"))
    model = tensor_parallel_model(make_model().to("neuron"), mesh["tensor"])
    model = sharded(model, mesh=mesh["data"])
    part = mesh["data"].get_local_rank()
    return train(model, lambda batch: batch.chunk(size // 2)[part].to("neuron"), model.named_parameters)


def context_parallel(rotation: str) -> Training:
    """Each rank has a part of every sequence; attention passes keys and values around."""
    set_rotate_method(rotation)
    mesh = init_device_mesh("neuron", (dist.get_world_size(),))
    model = nn.parallel.DistributedDataParallel(make_model().to("neuron"))
    optimizer, losses, gradients = optimizer_of(model.parameters()), [], []
    for batch in batches():
        tokens, targets = (each.to("neuron").contiguous() for each in batch)
        with split_context(mesh, buffers=[tokens, targets], buffer_seq_dims=[1, 1]):
            loss = loss_of(model(tokens), targets)
            loss.backward()
        gradients.append(gradients_of(model.named_parameters()))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(mean(loss.detach()))
    return Training(losses, gradients, whole(model.named_parameters()))


def _attention_inputs(width: int = 8) -> list[torch.Tensor]:
    torch.manual_seed(3)
    return [torch.randn(4, HEADS, 4 * SEQUENCE, width) for _ in range(3)]


def _attention_of_one(given: list[torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    own = [each.clone().requires_grad_() for each in given]
    out = nn.functional.scaled_dot_product_attention(*own, is_causal=True)
    out.square().sum().backward()
    return out.detach(), [each.grad for each in own if each.grad is not None]


def ring_attention() -> Training:
    """The operator alone, on longer sequences: its output and gradients."""
    set_rotate_method("alltoall")
    mesh = init_device_mesh("neuron", (dist.get_world_size(),))
    given = _attention_inputs()
    expected, wanted = _attention_of_one(given)
    buffers = [each.to("neuron") for each in given]
    with split_context(mesh, buffers=buffers, buffer_seq_dims=[2, 2, 2]):
        parts = [each.detach().clone().requires_grad_() for each in buffers]
        out = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        out.square().sum().backward()
        found = context_parallel_unshard(mesh, [out.detach(), *(part.grad for part in parts)], [2, 2, 2, 2])
    _assert_close(found, [expected, *wanted])
    return reference()


def attention_of_dtensors() -> Training:
    """Queries, keys and values split by batch, and by head, as DTensors."""
    mesh = init_device_mesh("neuron", (dist.get_world_size(),))
    given = _attention_inputs()
    expected, wanted = _attention_of_one(given)
    for dimension in (0, 1):
        parts = [distribute_tensor(each.to("neuron"), mesh, [Shard(dimension)]) for each in given]
        own = [each.requires_grad_() for each in parts]
        out = nn.functional.scaled_dot_product_attention(*own, is_causal=True)
        assert isinstance(out, DTensor)
        assert out.placements == (Shard(dimension),)
        out.square().sum().backward()
        found = [out.detach().full_tensor(), *(each.grad.full_tensor() for each in own)]
        _assert_close(found, [expected, *wanted])
    return reference()


def _assert_close(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for got, expected in zip(found, wanted, strict=True):
        torch.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-4)

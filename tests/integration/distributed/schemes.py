"""Trains a small transformer by one parallel scheme and compares it with the same training in one process.

Run by torchrun: `torchrun --nproc_per_node 2 schemes.py ddp fsdp2`. Every rank trains the reference on the
host itself, on the whole batch; it exits with 1 where losses or parameters differ.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

STEPS, BATCH, SEQUENCE, WIDTH, HEADS, VOCABULARY = 3, 8, 8, 16, 4, 32
Losses = list[float]
Parameters = dict[str, torch.Tensor]
Result = tuple[Losses, Parameters]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            each(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embedding(tokens)))


def make_model() -> Model:
    torch.manual_seed(7)
    return Model()


def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        tokens = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1), generator=generator)
        yield tokens[:, :-1], tokens[:, 1:]


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def optimizer_of(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    # One by one: PyTorch's grouped form takes no mix of tensors and DTensors.
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=False)


def mine(batch: torch.Tensor) -> torch.Tensor:
    return batch.chunk(dist.get_world_size())[dist.get_rank()].to("neuron")


def train(model: nn.Module, parts: Callable[[torch.Tensor], torch.Tensor]) -> Losses:
    optimizer, losses = optimizer_of(model.parameters()), []
    for tokens, targets in batches():
        loss = loss_of(model(parts(tokens)), parts(targets))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(mean(loss.detach())))
    return losses


def mean(loss: torch.Tensor) -> torch.Tensor:
    if isinstance(loss, torch.distributed.tensor.DTensor):
        return loss.full_tensor()
    dist.all_reduce(loss, op=dist.ReduceOp.AVG)
    return loss


def full(parameters: Parameters) -> Parameters:
    def whole(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor

    return {name: whole(tensor.detach()).cpu() for name, tensor in parameters.items()}


def reference() -> Result:
    model = make_model()
    optimizer, losses = optimizer_of(model.parameters()), []
    for tokens, targets in batches():
        loss = loss_of(model(tokens), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    return losses, dict(model.named_parameters())


def ddp() -> Result:
    model = nn.parallel.DistributedDataParallel(make_model().to("neuron"))
    losses = train(model, mine)
    return losses, full(dict(model.module.named_parameters()))


def ddp_static() -> Result:
    model = nn.parallel.DistributedDataParallel(
        make_model().to("neuron"), static_graph=True, gradient_as_bucket_view=True, bucket_cap_mb=0.01
    )
    return train(model, mine), full(dict(model.module.named_parameters()))


def ddp_unused() -> Result:
    model = nn.parallel.DistributedDataParallel(make_model().to("neuron"), find_unused_parameters=True)
    return train(model, mine), full(dict(model.module.named_parameters()))


def fsdp1() -> Result:
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    model = FullyShardedDataParallel(
        make_model().to("neuron"), auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=True,
        device_id=torch.device("neuron", torch.neuron.current_device()),
    )  # fmt: skip
    losses = train(model, mine)
    with FullyShardedDataParallel.summon_full_params(model):
        return losses, {
            name.replace("_fsdp_wrapped_module.", ""): each.detach().cpu().clone()
            for name, each in model.named_parameters()
        }


def _sharded(model: Model, **options: object) -> Model:
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
    return model


def fsdp2() -> Result:
    model = _sharded(make_model().to("neuron"))
    return train(model, mine), full(dict(model.named_parameters()))


def fsdp2_checkpointed() -> Result:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing

    model = make_model().to("neuron")
    apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, Block))
    for block in model.blocks:
        _shard(block)
    _shard(model)
    named = {name.replace("_checkpoint_wrapped_module.", ""): each for name, each in model.named_parameters()}
    return train(model, mine), full(named)


def _shard(module: nn.Module) -> None:
    from torch.distributed.fsdp import fully_shard

    fully_shard(module)


def fsdp2_mixed() -> Result:
    """Parameters in bfloat16, gradients added up in float32; compared loosely."""
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = _sharded(make_model().to("neuron"), mp_policy=policy)
    return train(model, mine), full(dict(model.named_parameters()))


def hsdp() -> Result:
    size = dist.get_world_size()
    mesh = init_device_mesh("neuron", (2, size // 2), mesh_dim_names=("replicate", "shard"))
    model = _sharded(make_model().to("neuron"), mesh=mesh)
    return train(model, mine), full(dict(model.named_parameters()))


def _tensor_parallel(model: Model, mesh: object) -> Model:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

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


def tensor_parallel() -> Result:
    mesh = init_device_mesh("neuron", (dist.get_world_size(),))
    model = _tensor_parallel(make_model().to("neuron"), mesh)
    return train(model, lambda batch: batch.to("neuron")), full(dict(model.named_parameters()))


def sequence_parallel() -> Result:
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        PrepareModuleOutput,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )  # fmt: skip

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
    return train(model, lambda batch: batch.to("neuron")), full(dict(model.named_parameters()))


def two_dimensional() -> Result:
    """Tensor parallel inside pairs, fully sharded across them."""
    size = dist.get_world_size()
    mesh = init_device_mesh("neuron", (size // 2, 2), mesh_dim_names=("data", "tensor"))
    model = _tensor_parallel(make_model().to("neuron"), mesh["tensor"])
    model = _sharded(model, mesh=mesh["data"])
    part = mesh["data"].get_local_rank()
    losses = train(model, lambda batch: batch.chunk(size // 2)[part].to("neuron"))
    return losses, full(dict(model.named_parameters()))


def context_parallel() -> Result:
    """Ring attention: queries, keys and values split along the sequence; forward and gradients compared."""
    from torch.distributed.tensor.experimental import context_parallel as split
    from torch.distributed.tensor.experimental._attention import context_parallel_unshard, set_rotate_method

    set_rotate_method("allgather")
    mesh = init_device_mesh("neuron", (dist.get_world_size(),))
    torch.manual_seed(3)
    given = [torch.randn(2, HEADS, 4 * SEQUENCE, 8) for _ in range(3)]
    expected = [each.clone().requires_grad_() for each in given]
    whole = nn.functional.scaled_dot_product_attention(*expected, is_causal=True)
    whole.square().sum().backward()
    own = [each.to("neuron").requires_grad_() for each in given]
    with torch.no_grad():
        buffers = [each.detach().clone() for each in own]
    with split(mesh, buffers=buffers, buffer_seq_dims=[2, 2, 2]):
        parts = [each.detach().requires_grad_() for each in buffers]
        out = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        out.square().sum().backward()
        gradients = context_parallel_unshard(mesh, [part.grad for part in parts], [2, 2, 2])
    wanted = [each.grad for each in expected]
    close = [torch.allclose(a.cpu(), b, atol=1e-4, rtol=1e-4) for a, b in zip(gradients, wanted, strict=True)]
    if not all(close):
        raise AssertionError("gradients of context parallel attention differ")
    return reference()


def pipeline(name: str) -> Result:
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    rank, size = dist.get_rank(), dist.get_world_size()
    model = make_model()
    pieces = [model.embedding, *model.blocks, model.head]
    per_stage = len(pieces) // size
    stage_module = nn.Sequential(*pieces[rank * per_stage : (rank + 1) * per_stage]).to("neuron")
    stage = PipelineStage(stage_module, rank, size, torch.device("neuron", torch.neuron.current_device()))
    kind = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}[name]
    schedule = kind(stage, n_microbatches=4, loss_fn=loss_of)
    optimizer, losses = optimizer_of(stage_module.parameters()), []
    for tokens, targets in batches():
        found: list[torch.Tensor] = []
        if rank == 0:
            schedule.step(tokens.to("neuron"))
        elif rank == size - 1:
            schedule.step(target=targets.to("neuron"), losses=found)
        else:
            schedule.step()
        optimizer.step()
        optimizer.zero_grad()
        loss = torch.stack(found).mean() if found else torch.zeros((), device="neuron")
        dist.broadcast(loss, size - 1)
        losses.append(float(loss))
    named = {id(each): name for name, each in model.named_parameters()}
    return losses, {named[id(each)]: each.detach().cpu() for each in stage_module.parameters()}


def compiled_ddp() -> Result:
    model = nn.parallel.DistributedDataParallel(make_model().to("neuron"))
    compiled = torch.compile(model, backend="neuron")
    return train(compiled, mine), full(dict(model.module.named_parameters()))


def compiled_tensor_parallel() -> Result:
    mesh = init_device_mesh("neuron", (dist.get_world_size(),))
    model = _tensor_parallel(make_model().to("neuron"), mesh)
    compiled = torch.compile(model, backend="neuron")
    return train(compiled, lambda batch: batch.to("neuron")), full(dict(model.named_parameters()))


def checkpointed() -> Result:
    """Saved by all ranks in the middle, loaded into a new model, trained on."""
    import torch.distributed.checkpoint as checkpoint

    model = _sharded(make_model().to("neuron"))
    losses = train(model, mine)
    folder = [tempfile.mkdtemp()] if dist.get_rank() == 0 else [""]
    dist.broadcast_object_list(folder, 0)
    checkpoint.save(model.state_dict(), checkpoint_id=Path(folder[0]))
    torch.manual_seed(99)
    other = _sharded(Model().to("neuron"))
    state = other.state_dict()
    checkpoint.load(state, checkpoint_id=Path(folder[0]))
    other.load_state_dict(state)
    return losses, full(dict(other.named_parameters()))


SCHEMES: dict[str, Callable[[], Result]] = {
    "ddp": ddp,
    "ddp_static": ddp_static,
    "ddp_unused": ddp_unused,
    "fsdp1": fsdp1,
    "fsdp2": fsdp2,
    "fsdp2_checkpointed": fsdp2_checkpointed,
    "fsdp2_mixed": fsdp2_mixed,
    "hsdp": hsdp,
    "tensor_parallel": tensor_parallel,
    "sequence_parallel": sequence_parallel,
    "two_dimensional": two_dimensional,
    "context_parallel": context_parallel,
    "gpipe": lambda: pipeline("gpipe"),
    "1f1b": lambda: pipeline("1f1b"),
    "compiled_ddp": compiled_ddp,
    "compiled_tensor_parallel": compiled_tensor_parallel,
    "checkpointed": checkpointed,
}
TOLERANCE = {"fsdp2_mixed": 2e-2}


def compare(scheme: str, got: Result, wanted: Result) -> None:
    tolerance = TOLERANCE.get(scheme, 2e-5)
    torch.testing.assert_close(torch.tensor(got[0]), torch.tensor(wanted[0]), rtol=tolerance, atol=tolerance)
    for name, tensor in got[1].items():
        clean = name.removeprefix("_orig_mod.")
        torch.testing.assert_close(
            tensor,
            wanted[1][clean].detach(),
            rtol=tolerance,
            atol=tolerance,
            msg=lambda text, at=clean: f"{at}: {text}",
        )


def main(schemes: list[str]) -> int:
    torch.set_num_threads(1)
    dist.init_process_group("neuron")
    wanted, failed = reference(), 0
    for scheme in schemes or list(SCHEMES):
        try:
            compare(scheme, SCHEMES[scheme](), wanted)
            outcome = "equal"
        except Exception as error:
            outcome, failed = f"FAILED {type(error).__name__}: {str(error).splitlines()[0]}", 1
            traceback.print_exc()
        if dist.get_rank() == 0:
            print(f"{scheme}: {outcome}", flush=True)
        dist.barrier()
    dist.destroy_process_group()
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

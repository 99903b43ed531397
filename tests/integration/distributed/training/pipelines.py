"""Pipelines: each rank has one or two stages of the model, and micro-batches flow through."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineSchedule

from tests.integration.distributed.training.model import (
    Model,
    Training,
    batches,
    gradients_of,
    loss_of,
    make_model,
    optimizer_of,
    whole,
)

BLOCKS = 6  # with embedding and head: one piece for each of the stages of four ranks
MICROBATCHES = 8
V_SHAPED = ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")


def stages_of(schedule: str) -> Sequence[int]:
    """Which stages this rank has: one after the other, in turns, or there and back."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if schedule in ("ScheduleGPipe", "Schedule1F1B"):
        return [rank]
    return [rank, 2 * size - 1 - rank] if schedule in V_SHAPED else [rank, rank + size]


def pieces_of(model: Model, stage: int, stages: int) -> nn.Sequential:
    pieces = [model.embedding, *model.blocks, model.head]
    first, last = (stage * len(pieces) // stages, (stage + 1) * len(pieces) // stages)
    return nn.Sequential(*pieces[first:last])


def pipeline(schedule: str) -> Training:
    model, numbers = make_model(BLOCKS), stages_of(schedule)
    count = len(numbers) * dist.get_world_size()
    modules = [pieces_of(model, number, count).to("neuron") for number in numbers]
    device = torch.device("neuron", torch.neuron.current_device())
    stages = [PipelineStage(m, n, count, device) for m, n in zip(modules, numbers, strict=True)]
    given = stages[0] if len(stages) == 1 else stages
    runner = getattr(pipelining, schedule)(given, n_microbatches=MICROBATCHES, loss_fn=loss_of)
    names = {id(each): name for name, each in model.named_parameters()}
    own = [(names[id(each)], each) for module in modules for each in module.parameters()]
    return _train(runner, own, stages)


def _train(
    runner: _PipelineSchedule, own: list[tuple[str, nn.Parameter]], stages: list[PipelineStage]
) -> Training:
    optimizer = optimizer_of([each for _, each in own])
    losses, gradients = [], []
    for tokens, targets in batches():
        losses.append(_step(runner, tokens, targets, stages))
        gradients.append(gradients_of(own))
        optimizer.step()
        optimizer.zero_grad()
    return Training(losses, gradients, whole(own))


def _step(
    runner: _PipelineSchedule, tokens: torch.Tensor, targets: torch.Tensor, stages: list[PipelineStage]
) -> float:
    found: list[torch.Tensor] = []
    arguments = [tokens.to("neuron")] if any(stage.is_first for stage in stages) else []
    if any(stage.is_last for stage in stages):
        runner.step(*arguments, target=targets.to("neuron"), losses=found)
    else:
        runner.step(*arguments)
    loss = torch.stack(found).mean().detach() if found else torch.zeros((), device="neuron")
    dist.all_reduce(loss)  # the ranks without the last stage add nothing
    return float(loss)

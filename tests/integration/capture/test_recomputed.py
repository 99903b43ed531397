"""What activation checkpointing computes again is told, and is no part of the model's FLOPs."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.integration.capture.programs import Folder, rows

ROWS, WIDTH, HIDDEN = 32, 64, 128
LAYER_FLOPS = 2 * ROWS * WIDTH * HIDDEN
MODEL_FLOPS = 5 * LAYER_FLOPS
"""Both layers, the gradients of their weights, and that of the second's input: nobody needs the first's."""

TORCH = f"""
import torch
from torch.utils.checkpoint import checkpoint
model = torch.nn.Sequential(
    torch.nn.Linear({WIDTH}, {HIDDEN}), torch.nn.Tanh(), torch.nn.Linear({HIDDEN}, {WIDTH})
).to("neuron")
def step(inputs):
    return checkpoint(model, inputs, use_reentrant=False).square().mean()
COMPILE
step(torch.ones({ROWS}, {WIDTH}, device="neuron")).backward()
"""
EAGER = TORCH.replace("COMPILE", "")
REENTRANT = EAGER.replace("reentrant=False", "reentrant=True").replace(
    '"neuron"))', '"neuron").requires_grad_())'
)
"""A function of Python whose backward pass runs another; it needs inputs that have a gradient."""
JAX = f"""
import jax
import jax.numpy as jnp
@jax.checkpoint
def model(weights, inputs):
    return jnp.tanh(inputs @ weights[0]) @ weights[1]
weights = (jnp.ones(({WIDTH}, {HIDDEN})), jnp.ones(({HIDDEN}, {WIDTH})))
loss = jax.jit(jax.grad(lambda weights, inputs: jnp.square(model(weights, inputs)).mean()))
jax.block_until_ready(loss(weights, jnp.ones(({ROWS}, {WIDTH}))))
"""
PROGRAMS = {
    "eager": (EAGER, 1),  # ends where the last value that was not kept is there
    "compiled": (TORCH.replace("COMPILE", 'step = torch.compile(step, backend="neuron")'), 2),
    "jax": (JAX, 1),  # without the second layer, whose result nobody uses again
}
"""Programs, and how many of the two layers they compute again."""
QUERY = """
SELECT sum(model_flops) FILTER (is_recomputed), sum(model_flops) FILTER (NOT is_recomputed),
    (SELECT model_flops FROM Summary)
FROM HloInstruction
"""


@pytest.mark.parametrize("way", PROGRAMS)
def test_the_forward_pass_is_computed_again_and_counted_once(folder: Folder, way: str) -> None:
    if way == "jax" and find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    program, layers = PROGRAMS[way]
    folder.capture(program, "--lnc", 1, "--host-clock", "fixed")
    assert rows(folder.profile(), QUERY) == [(layers * LAYER_FLOPS, MODEL_FLOPS, MODEL_FLOPS)]


@pytest.mark.parametrize(
    "program", [EAGER, pytest.param(REENTRANT, marks=pytest.mark.slow)], ids=["hooks", "reentrant"]
)
def test_what_is_computed_again_stands_at_the_users_line(folder: Folder, program: str) -> None:
    folder.capture(program, "--host-clock", "fixed")
    (line,) = [number for number, text in enumerate(program.splitlines(), 1) if "return checkpoint" in text]
    query = """
        SELECT DISTINCT own.source_line, own.is_own FROM FrameworkInstruction AS operation
        JOIN Frontier AS own ON own.stack_frame_id = split_part(operation.stack_frame_ids, ',', 1)
        WHERE operation.is_recomputed
    """
    assert rows(folder.profile(), query) == [(line, True)]
    not_own = query.replace("WHERE operation.is_recomputed", "WHERE NOT own.is_own")
    assert not rows(folder.profile(), not_own)

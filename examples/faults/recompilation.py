"""A training loop whose compiled step takes its number as a constant, and so is compiled every time."""

import functools

import jax
import jax.numpy as jnp


@functools.partial(jax.jit, static_argnums=1)
def step(weights, number):
    return weights - 0.01 * jnp.tanh(weights @ weights) / (1 + number)


weights = jnp.ones((512, 512), jnp.bfloat16)
for number in range(12):
    weights = step(weights, number)  # fault
    # mended: weights = step(weights, 0)
weights.block_until_ready()

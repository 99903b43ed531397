"""Matrix products in fp32, where the Tensor engine takes four passes and bf16 takes one."""

import jax
import jax.numpy as jnp


@jax.jit
def step(weights, x):
    for _ in range(6):
        x = x @ weights  # fault
    return x


weights = x = jnp.zeros((2048, 2048), jnp.float32)
# mended: weights = x = jnp.zeros((2048, 2048), jnp.bfloat16)
for _ in range(20):
    x = step(weights, x)
x.block_until_ready()

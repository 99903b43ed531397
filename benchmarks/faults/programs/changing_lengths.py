"""A function under `jax.jit` meets another length in every call."""

# rule: recompilation
# case: WIDTH=128, FIRST=16, STEP=8
# case: WIDTH=256, FIRST=40, STEP=12
import jax
import jax.numpy as jnp
import numpy as np

WIDTH = 128
FIRST = 16
STEP = 8
numbers = np.random.default_rng(0)
table = numbers.standard_normal((512, WIDTH)).astype(np.float32)


@jax.jit
def encoded(table, tokens):
    return jnp.tanh(table[tokens]).mean(axis=0)


lengths = [FIRST + number * STEP for number in range(8)]
# mended: lengths = [FIRST] * 8
table = jnp.asarray(table)
for length in lengths:
    result = encoded(table, numbers.integers(0, 512, length))  # fault

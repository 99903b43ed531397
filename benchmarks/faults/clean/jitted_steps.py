"""Steps of a JAX function under `jax.jit`, none of whose values is read before the last."""

# case: WIDTH=2048, ROWS=2048
# case: WIDTH=1536, ROWS=4096
import jax
import jax.numpy as jnp
import numpy as np

WIDTH = 2048
ROWS = 2048
numbers = np.random.default_rng(0)
first, second = (
    jnp.asarray(numbers.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5, jnp.bfloat16) for _ in range(2)
)
x = jnp.asarray(numbers.standard_normal((ROWS, WIDTH)), jnp.bfloat16)


@jax.jit
def step(x, first, second):
    return x + jax.nn.gelu(x @ first) @ second


for _ in range(20):
    x = step(x, first, second)

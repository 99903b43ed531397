"""A JAX function that is computed operation by operation."""

# rule: missing_jit
# case: WIDTH=256, LAYERS=4
# case: WIDTH=512, LAYERS=2
# case: WIDTH=128, LAYERS=6
import jax
import jax.numpy as jnp
import numpy as np

WIDTH = 256
LAYERS = 4
numbers = np.random.default_rng(0)
weights = [
    jnp.asarray(numbers.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5, jnp.bfloat16) for _ in range(LAYERS)
]


def normalised(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def model(x):
    for weight in weights:
        x = x + jax.nn.gelu(normalised(x) @ weight)
    return x


# added: model = jax.jit(model)
x = jnp.asarray(numbers.standard_normal((128, WIDTH)), jnp.bfloat16)
for _ in range(6):
    x = model(x)  # fault

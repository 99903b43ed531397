"""Training with Flax and Optax, kept by Orbax on the way, and with Equinox."""

import json
import tempfile
from pathlib import Path

import equinox
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint

x = jax.random.normal(jax.random.key(0), (64, 128))


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(128)(nn.gelu(nn.Dense(512)(nn.LayerNorm()(x))))


network, optimizer = Network(), optax.adamw(1e-2)
state = network.init(jax.random.key(1), x)
moments = optimizer.init(state)


@jax.jit
def step(state, moments):
    def loss(state):
        return jnp.square(network.apply(state, x) - x).mean()

    value, gradient = jax.value_and_grad(loss)(state)
    updates, moments = optimizer.update(gradient, moments, state)
    return optax.apply_updates(state, updates), moments, value


values = []
for _ in range(2):
    state, moments, value = step(state, moments)
    values.append(float(value))
with tempfile.TemporaryDirectory() as folder:
    checkpointer = orbax.checkpoint.StandardCheckpointer()
    checkpointer.save(Path(folder) / "state", state)
    checkpointer.wait_until_finished()
    state = checkpointer.restore(Path(folder) / "state", state)
values.append(float(step(state, moments)[2]))


@equinox.filter_jit
@equinox.filter_value_and_grad
def slope(model, x):
    return jnp.square(jax.vmap(model)(x) - x).mean()


value, gradient = slope(equinox.nn.MLP(128, 128, 512, 2, key=jax.random.key(2)), x)
values += [float(value), float(jnp.abs(gradient.layers[0].weight).sum())]
print(json.dumps({"device": jax.devices()[0].platform, "values": values}))

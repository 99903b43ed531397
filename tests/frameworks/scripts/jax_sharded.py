"""JAX over 64 devices: shardings of `jit`, `shard_map` by hand, and `jax.profiler` beside."""

import json
import tempfile
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.config.update("jax_num_cpu_devices", 64)
mesh = Mesh(np.array(jax.devices()).reshape(16, 4), ("data", "model"))
rows, columns = PartitionSpec("data", None), PartitionSpec(None, "model")
generator = np.random.default_rng(0)
x = jax.device_put(generator.normal(size=(128, 256)).astype(np.float32), NamedSharding(mesh, rows))
w = jax.device_put(generator.normal(size=(256, 256)).astype(np.float32) / 16, NamedSharding(mesh, columns))


@jax.jit
def loss(w, x):
    return jnp.square(jax.nn.gelu(x @ w)).mean()


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(rows, columns), out_specs=PartitionSpec())
def total(x, w):
    return jax.lax.psum(jnp.square(jnp.tanh(x @ w)).sum(), ("data", "model"))


step = jax.jit(jax.value_and_grad(loss))
with tempfile.TemporaryDirectory() as folder, jax.profiler.trace(folder):
    value, gradient = step(w, x)
    values = [float(value), float(np.abs(np.asarray(gradient)).sum()), float(total(x, w))]
print(json.dumps({"device": jax.devices()[0].platform, "values": values}))

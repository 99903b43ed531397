"""Multiplies matrices that are sharded over eight devices.

python sharded_matmul.py
neuron-profile capture -- python sharded_matmul.py
"""

import jax

jax.config.update("jax_num_cpu_devices", 8)

import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec


@jax.jit
def product(a, b):
    return a @ b


@jax.jit
def contracted(a, b):
    return (a @ b).sum(axis=0)


def main():
    mesh = Mesh(jax.devices(), ("core",))
    key = jax.random.key(0)

    def place(matrix, *spec):
        return jax.device_put(matrix, NamedSharding(mesh, PartitionSpec(*spec)))

    a = jax.random.normal(key, (1024, 1024))
    b = jnp.roll(a, 1, axis=0)
    rows = product(place(a, "core", None), place(b, None, None))
    gathered = product(place(a, "core", None), place(b, None, "core"))
    reduced = contracted(place(a, None, "core"), place(b, "core", None))
    for name, value in (("rows", rows), ("gathered", gathered), ("reduced", reduced)):
        print(f"{name} {float(jnp.abs(value).mean()):.9g}")


if __name__ == "__main__":
    main()

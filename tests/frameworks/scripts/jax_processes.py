"""JAX in two processes of two devices each (`jax.distributed`)."""

import json
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def main(process, address):
    jax.config.update("jax_num_cpu_devices", 2)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, 2, process)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    whole = np.arange(64 * 128, dtype=np.float32).reshape(64, 128) / 8192
    rows = NamedSharding(mesh, PartitionSpec("data"))
    x = jax.make_array_from_callback(whole.shape, rows, lambda index: whole[index])
    value, gradient = jax.jit(jax.value_and_grad(lambda w, x: jnp.square(jnp.tanh(x @ w)).mean()))(
        np.full((128, 64), 0.01, np.float32), x
    )
    values = [float(value), float(jnp.abs(gradient).sum())]
    if process == 0:
        print(json.dumps({"device": jax.devices()[0].platform, "values": values}), flush=True)


if sys.argv[1:2] == ["--process"]:
    main(int(sys.argv[2]), sys.argv[3])
else:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    command = [sys.executable, __file__, "--process"]
    processes = [subprocess.Popen([*command, str(number), address]) for number in range(2)]
    sys.exit(max(process.wait() for process in processes))

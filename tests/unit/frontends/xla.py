"""Runs StableHLO text by XLA's CPU back end: an engine that is not ours."""

from __future__ import annotations

from typing import Any

import numpy as np


def run(text: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The results of the module's `main` on these inputs."""
    import jax
    from jax._src import config
    from jax._src.lib import xla_client
    from jaxlib import _jax

    device = jax.devices("cpu")[0]
    compiled = device.client.compile_and_load(text, _jax.DeviceList((device,)), xla_client.CompileOptions())
    # For this call alone: the tests that follow in this process expect JAX's own default of 32 bits.
    with config.enable_x64(True):
        inputs: list[Any] = [jax.device_put(array, device) for array in arrays]
        results = compiled.execute_sharded(inputs).disassemble_into_single_device_arrays()
        return [np.asarray(result[0]) for result in results]

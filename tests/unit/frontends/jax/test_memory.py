"""Device memory and copies of a JAX program, seen through the records."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from neuron_tools.device.host.recorder import PythonRecorder  # noqa: E402
from neuron_tools.frontends.jax.interception import Interception  # noqa: E402
from neuron_tools.frontends.jax.memory import DeviceMemory  # noqa: E402
from neuron_tools.frontends.jax.transfers import Transfers  # noqa: E402
from neuron_tools.records.capture_log import RECORD_DTYPE, RecordKind  # noqa: E402

SIDE = 64
BYTES = SIDE * SIDE * 4
BANDWIDTH, LATENCY_NS, DISPATCH_NS = 1e9, 500, 1000


class Provider:
    """Every computation takes a microsecond."""

    def executable_for(self, module_factory, key, name):
        return 1, 1000


@pytest.fixture
def recorded(tmp_path):
    """Runs a function while everything is recorded; gives the records."""
    recorder = PythonRecorder(
        tmp_path / "events.bin", lambda *_: None, lambda *_: None, host_bytes_per_s=BANDWIDTH,
        host_latency_ns=LATENCY_NS, fixed_ns_per_dispatch=DISPATCH_NS,
    )  # fmt: skip
    memory = DeviceMemory(recorder)
    hooks = [Interception(recorder, Provider(), memory), Transfers(recorder, memory)]

    def run(function):
        for hook in hooks:
            hook.install()
        try:
            function()
        finally:
            for hook in reversed(hooks):
                hook.uninstall()
        recorder.close()
        return np.fromfile(tmp_path / "events.bin", RECORD_DTYPE)

    yield run
    recorder.abandon()


def of_kind(records, *kinds):
    return records[np.isin(records["kind"], [int(kind) for kind in kinds])]


def held(records):
    """Bytes held after each change of memory."""
    changes = of_kind(records, RecordKind.ALLOCATE, RecordKind.FREE)
    sign = np.where(changes["kind"] == int(RecordKind.ALLOCATE), 1, -1)
    return np.cumsum(sign * changes["bytes"]).tolist()


def test_an_array_is_held_until_it_is_dropped(recorded):
    def program():
        x = jax.device_put(np.ones((SIDE, SIDE), np.float32))
        y = jax.jit(lambda x: x * 2)(x)
        del x
        del y

    assert held(recorded(program)) == [BYTES, 2 * BYTES, BYTES, 0]


def test_a_donated_array_is_gone_when_the_computation_ran(recorded):
    def program():
        x = jax.device_put(np.ones((SIDE, SIDE), np.float32))
        step = jax.jit(lambda x: x + 1, donate_argnums=0)
        for _ in range(3):
            x = step(x)

    assert max(held(recorded(program))) <= 2 * BYTES


def test_addresses_tell_which_memory_is_freed(recorded):
    def program():
        first = jax.device_put(np.ones((SIDE, SIDE), np.float32))
        second = jax.device_put(np.ones((SIDE,), np.float32))
        del second, first

    changes = of_kind(recorded(program), RecordKind.ALLOCATE, RecordKind.FREE)
    assert changes["bytes"].tolist() == [BYTES, SIDE * 4, SIDE * 4, BYTES]
    assert changes["address"][0] == changes["address"][3] != changes["address"][1] == changes["address"][2]


def test_a_host_array_is_copied_to_the_device(recorded):
    (copy,) = of_kind(
        recorded(lambda: jax.device_put(np.ones((SIDE, SIDE), np.float32))), RecordKind.COPY_TO_DEVICE
    )
    assert copy["bytes"] == BYTES
    assert copy["device_end_ns"] - copy["device_start_ns"] == LATENCY_NS + BYTES


def test_reading_values_copies_them_once_and_the_host_waits(recorded):
    def program():
        x = jnp.ones((SIDE, SIDE), jnp.float32) + 1
        x.tolist()
        x.tolist()

    copies = of_kind(recorded(program), RecordKind.COPY_TO_HOST)
    assert copies["bytes"].tolist() == [BYTES]
    assert copies["host_end_ns"][0] == copies["device_end_ns"][0]

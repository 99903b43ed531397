from __future__ import annotations

import pytest

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
import jax.numpy as jnp  # noqa: E402

from neuron_tools.frontends.jax.lowering import lower  # noqa: E402
from neuron_tools.frontends.jax.modules import ModuleScopes  # noqa: E402


class Block(eqx.Module):
    layers: dict
    scale: jax.Array

    def __init__(self, key):
        self.layers = {"up": eqx.nn.Linear(4, 8, key=key), "down": eqx.nn.Linear(8, 4, key=key)}
        self.scale = jnp.ones(4)

    def __call__(self, x):
        return x + self.scale * self.layers["down"](jnp.tanh(self.layers["up"](x)))


class Network(eqx.Module):
    blocks: list

    def __init__(self, key):
        self.blocks = [Block(key), Block(key)]

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x


@pytest.fixture
def scopes():
    installed = ModuleScopes()
    installed.install()
    yield installed
    installed.uninstall()


def module_paths(opcode):
    arrays, rest = eqx.partition(Network(jax.random.key(0)), eqx.is_array)
    lowered = jax.jit(lambda arrays, x: eqx.combine(arrays, rest)(x)).lower(arrays, jnp.ones(4))
    module = lower(lowered.as_text(debug_info=True).encode())
    rows = [module.framework[op.framework[0]] for op in module.operations if op.opcode == opcode]
    return [row.module_path.partition(".")[2] for row in rows]


def test_operations_carry_the_attribute_path_of_their_module(scopes):
    assert module_paths("dot_general") == [
        "Network.blocks.0.layers.up",
        "Network.blocks.0.layers.down",
        "Network.blocks.1.layers.up",
        "Network.blocks.1.layers.down",
    ]
    assert module_paths("tanh") == ["Network.blocks.0", "Network.blocks.1"]


def test_nothing_is_left_of_the_wrappers():
    installed = ModuleScopes()
    before = vars(Block)["__call__"]
    installed.install()
    assert vars(Block)["__call__"] is not before
    installed.uninstall()
    assert vars(Block)["__call__"] is before

import pytest

jax = pytest.importorskip("jax")
nnx = pytest.importorskip("flax.nnx")
if not hasattr(nnx, "List"):
    pytest.skip("this version of flax has no lists of modules", allow_module_level=True)
import jax.numpy as jnp  # noqa: E402

from neuron_tools.frontends.jax.lowering import lower  # noqa: E402
from neuron_tools.frontends.jax.modules import ModuleScopes  # noqa: E402


class Block(nnx.Module):
    def __init__(self, rngs):
        self.up = nnx.Linear(4, 8, rngs=rngs)
        self.down = nnx.Linear(8, 4, rngs=rngs)

    def __call__(self, x):
        return x + self.down(jnp.tanh(self.up(x)))


class Network(nnx.Module):
    def __init__(self, rngs):
        self.blocks = nnx.List([Block(rngs), Block(rngs)])

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def module_paths(opcode):
    network = Network(nnx.Rngs(0))
    lowered = nnx.jit(lambda network, x: network(x)).lower(network, jnp.ones((2, 4)))
    module = lower(lowered.lowered.as_text(debug_info=True).encode())
    rows = [module.framework[op.framework[0]] for op in module.operations if op.opcode == opcode]
    return [row.module_path.partition(".")[2] for row in rows]


@pytest.fixture
def scopes():
    installed = ModuleScopes()
    installed.install()
    yield installed
    installed.uninstall()


def test_operations_carry_the_attribute_path_of_their_module(scopes):
    assert module_paths("dot_general") == [
        "Network.blocks.0.up",
        "Network.blocks.0.down",
        "Network.blocks.1.up",
        "Network.blocks.1.down",
    ]
    assert module_paths("tanh") == ["Network.blocks.0", "Network.blocks.1"]


def test_classes_made_later_are_wrapped_too(scopes):
    class Later(nnx.Module):
        def __call__(self, x):
            return jnp.sin(x)

    text = jax.jit(Later()).lower(jnp.ones(4)).as_text(debug_info=True)
    assert "Later/sin" in text


def test_uninstalling_leaves_the_classes_as_they_were():
    before = vars(nnx.Linear)["__call__"]
    scopes = ModuleScopes()
    scopes.install()
    assert vars(nnx.Linear)["__call__"] is not before
    scopes.uninstall()
    assert vars(nnx.Linear)["__call__"] is before
    assert module_paths("tanh") == ["", ""]

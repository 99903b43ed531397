import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from neuron_tools.compiler.passes.dead_code import eliminate_dead_code  # noqa: E402
from neuron_tools.compiler.passes.fold_constants import fold_constants  # noqa: E402
from neuron_tools.compiler.passes.recognise_by_value import recognise_by_value  # noqa: E402
from neuron_tools.compiler.passes.simplify import simplify  # noqa: E402
from neuron_tools.frontends.jax.lowering import lower  # noqa: E402


def recognised(function, *arguments):
    module = lower(jax.jit(function).lower(*arguments).as_text(debug_info=True).encode())
    module = fold_constants(simplify(module))
    return eliminate_dead_code(recognise_by_value(module))


def functions(module):
    return [op.attributes["function"] for op in module.operations if "function" in op.attributes]


X = jnp.ones((128, 512), jnp.float32)
FORMULAS = {
    "gelu": [
        jax.nn.gelu,
        lambda x: jax.nn.gelu(x, approximate=False),
        lambda x: x / 2 + x / 2 * jnp.tanh(0.79788 * x * (1 + 0.044715 * x * x)),
    ],
    "silu": [jax.nn.silu, lambda x: x / (1 + jnp.exp(-x))],
    "mish": [jax.nn.mish],
    "softplus": [lambda x: jnp.log(1 + jnp.exp(x))],
}
CASES = [(name, formula) for name, formulas in FORMULAS.items() for formula in formulas]


@pytest.mark.parametrize(("name", "formula"), CASES)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_a_function_is_one_operation_however_it_is_written(name, formula, dtype):
    module = recognised(formula, X.astype(dtype))
    assert functions(module) == [name]
    assert {op.opcode for op in module.operations} <= {"activation", "constant", "convert"}


def test_its_argument_may_be_computed():
    module = recognised(lambda x, b: jax.nn.gelu(3 * x + b), X, X)
    assert functions(module) == ["gelu"]
    assert [op.opcode for op in module.operations if op.opcode in ("multiply", "add")] == ["multiply", "add"]


def test_it_stands_for_all_that_read_it_where_one_widens_it():
    """The gradient of a bias is a sum in fp32 of what products read as it is."""

    def narrow_and_summed(x):
        y = jax.nn.gelu(x)
        return y, jnp.sum(y.reshape(64, 1024).astype(jnp.float32), 0)

    module = recognised(narrow_and_summed, X.astype(jnp.bfloat16))
    assert functions(module) == ["gelu"]
    assert "tanh" not in {op.opcode for op in module.operations}


@pytest.mark.parametrize("formula", [jax.nn.gelu, jax.nn.silu])
def test_its_gradient_is_one_operation_too(formula):
    module = recognised(lambda x, g: jax.vjp(formula, x)[1](g), X, X)
    (gradient,) = functions(module)
    assert gradient.endswith("_grad")
    names = {op.opcode for op in module.operations} - {"constant", "broadcast_in_dim"}
    assert names == {"activation_gradient"}


@pytest.mark.parametrize(
    "formula",
    [
        jnp.tanh,
        lambda x: 0.6 * x * (1 + jnp.tanh(0.79788 * x)),
        lambda x: x * jnp.exp(-x),
        lambda x: x + jnp.tanh(x),
        lambda x: jnp.exp(x) * (x > 0).astype(x.dtype),
        lambda x: jnp.exp((x > 0).reshape(512, 128).astype(x.dtype)).reshape(128, 512) * x,
    ],
)
def test_what_is_no_known_function_stays_as_it_is(formula):
    module = recognised(formula, X)
    assert functions(module) == []


def test_what_makes_whole_numbers_of_its_values_is_no_part_of_a_function():
    module = recognised(lambda x: jnp.log(1 + jnp.exp(x)).astype(jnp.int32).astype(x.dtype), X)
    assert functions(module) == ["softplus"]
    assert [op.opcode for op in module.operations if op.opcode == "convert"] == ["convert"] * 2


def test_the_operation_is_charged_to_all_that_it_stands_for():
    module = recognised(lambda x: x / (1 + jnp.exp(-x)), X)
    (activation,) = [op for op in module.operations if op.opcode == "activation"]
    names = {module.framework[row].name.split("/")[-1] for row in activation.framework}
    assert {"neg", "exp", "add", "div"} <= names

import inspect

import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from neuron_tools.frontends.jax.lowering import lower  # noqa: E402

OLDER = jax.__version_info__ < (0, 7)


def hidden(x, w):
    with jax.named_scope("hidden"):
        return jnp.tanh(x @ w)


def loss(x, w):
    return hidden(x, w).sum()


def module_of(function, *arguments):
    return lower(jax.jit(function).lower(*arguments).as_text(debug_info=True).encode())


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


def rows(module, opcode):
    return [module.framework[op.framework[0]] for op in module.operations if op.opcode == opcode]


def test_operations_know_their_scope_line_and_callers():
    x = jnp.ones((8, 4))
    (product,) = rows(module_of(loss, x, x.T), "dot_general")
    assert product.module_path == "loss.hidden"
    assert product.name.endswith("hidden/dot_general")
    assert [frame.function for frame in product.stack][:2] == ["hidden", "loss"]
    assert product.stack[0].file == __file__
    assert product.stack[0].line == line_of(hidden, "tanh")
    assert product.stack[1].line == line_of(loss, "hidden(x, w)")


def test_backward_operations_stand_at_the_forward_line():
    x = jnp.ones((8, 4))
    products = rows(module_of(jax.grad(loss), x, x.T), "dot_general")
    assert [row.backward for row in products] == [False, True]
    assert {row.stack[0].line for row in products} == {line_of(hidden, "tanh")}
    assert {row.module_path for row in products} == {"loss.hidden"}


@pytest.mark.skipif(OLDER, reason="JAX 0.6 gives the callee the frames of its first caller")
def test_a_function_called_twice_is_told_apart_by_its_callers():
    inner = jax.jit(lambda y: jnp.sin(y))

    def twice(y):
        first = inner(y)
        return inner(first)

    sines = rows(module_of(twice, jnp.ones(4)), "sine")
    outer = [row.stack[1].line for row in sines]
    assert outer == [line_of(twice, "first ="), line_of(twice, "return")]


def test_parameters_are_named_as_the_user_names_them():
    module = module_of(lambda params, x: params["w"] @ x, {"w": jnp.ones((4, 4))}, jnp.ones(4))
    assert module.parameter_names == ("params['w']", "x")


def test_constants_belong_to_the_operation_that_uses_them():
    module = module_of(lambda x: jnp.exp(x) * 3.0, jnp.ones((128, 4)))
    assert all(op.framework for op in module.operations)


def test_a_complex_constant_is_read_by_its_shape():
    module = module_of(lambda x: jnp.abs(x + 1j * x), jnp.ones((4, 4)))
    assert "abs" in {operation.opcode for operation in module.operations}

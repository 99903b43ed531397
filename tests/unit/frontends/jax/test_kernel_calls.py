"""Kernels on JAX arrays: values under jit, grad, vmap and scan, and their Programs in what is compiled."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from neuron_tools import hardware  # noqa: E402
from neuron_tools.compiler.compile import compile_module  # noqa: E402
from neuron_tools.compiler.ready_program import ready_program_of, ready_programs  # noqa: E402
from neuron_tools.frontends.jax.kernel_primitive import KernelGradientError  # noqa: E402
from neuron_tools.frontends.jax.lowering import lower  # noqa: E402
from neuron_tools.nki import isa as nisa, language as nl  # noqa: E402
from neuron_tools.nki.kernel import jit  # noqa: E402
from neuron_tools.records.kernel_source import with_kernels  # noqa: E402
from neuron_tools.simulator import simulate  # noqa: E402


@jit
def sine_kernel(x, scale, shift):
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    factor = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    offset = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=factor, src=scale)
    nisa.memset(dst=offset, value=shift)
    nisa.activation(dst=tile, data=tile, op=nl.sin, bias=offset)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=factor, op=nl.multiply)
    nisa.dma_copy(dst=result, src=tile)
    return result


@jit
def add_into(x, y):
    """y += x, returning y and y's sum of rows."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    other = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    sums = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=other, src=y)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=other, op=nl.add)
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
    nisa.dma_copy(dst=y, src=tile)
    nisa.dma_copy(dst=sums, src=total)
    return y, sums


@jax.custom_vjp
def sine(x):
    return sine_kernel(x, jnp.ones_like(x), 0.0)


sine.defvjp(lambda x: (sine(x), x), lambda x, slope: (sine_kernel(x, slope, np.pi / 2),))


@pytest.fixture
def x():
    return jnp.linspace(-1.5, 1.5, 32 * 64).reshape(32, 64)


def test_values_outside_jit(x):
    np.testing.assert_allclose(sine(x), jnp.sin(x), atol=1e-6)


def test_values_and_type_in_bf16(x):
    result = sine(x.astype(jnp.bfloat16))
    assert result.dtype == jnp.bfloat16
    np.testing.assert_allclose(result.astype(jnp.float32), jnp.sin(x), atol=1e-2)


def test_gradient_of_custom_vjp_under_jit(x):
    found = jax.jit(jax.grad(lambda x: jnp.sum(sine(x * 0.5) * 2)))(x)
    np.testing.assert_allclose(found, jnp.cos(x * 0.5), atol=1e-6)


def test_vmap_takes_one_element_after_the_other(x):
    batch = jnp.stack([x, x / 2, x / 3])
    np.testing.assert_allclose(jax.jit(jax.vmap(sine))(batch), jnp.sin(batch), atol=1e-6)
    middle = jax.vmap(sine, in_axes=1, out_axes=1)(jnp.stack([x, x / 2], 1))
    np.testing.assert_allclose(middle[:, 1], jnp.sin(x / 2), atol=1e-6)


def test_an_argument_that_the_kernel_returns_is_a_new_array(x):
    y = jnp.ones_like(x)
    result, sums = jax.jit(add_into)(x, y)
    np.testing.assert_allclose(result, x + 1)
    np.testing.assert_allclose(sums[:, 0], (x + 1).sum(1), atol=1e-4)
    np.testing.assert_array_equal(y, 1)


def test_a_kernel_without_gradient_says_so(x):
    with pytest.raises(KernelGradientError, match=r"'sine_kernel' has no gradient: .*custom_vjp"):
        jax.grad(lambda x: sine_kernel(x, x, 0.0).sum())(x)


def test_the_compiled_module_has_the_kernels_program(x):
    module = lower(str(jax.jit(lambda x: sine(x + 1) * 2).lower(x).compiler_ir()).encode())
    ready = [ready_program_of(operation) for operation in module.operations]
    (found,) = [program for program in ready if program is not None]
    assert found.program.source.names[0] == "sine_kernel"
    assert [number for _, number in found.operands] == [0, 1]


def test_a_kernel_in_a_scan_runs_in_every_trip_with_its_lines(x):
    def scanned(x):
        return jax.lax.scan(lambda carry, _: (sine(carry), None), x, None, length=3)[0]

    module = lower(str(jax.jit(scanned).lower(x).compiler_ir()).encode())
    sources = {key: ready.program.source for key, ready in ready_programs(module).items()}
    program = with_kernels(compile_module(module, hardware.get("trn2")), sources)
    kernels = [row for row, operation in enumerate(program.hlo) if operation.kernel]
    assert [program.hlo[row].name for row in kernels] == [
        f"while.0.{trip}.nki_kernel.sine_kernel.{trip}" for trip in range(3)
    ]
    (source,) = sources.values()
    for row in kernels:
        inside = program.instructions["hlo"] == row
        assert inside.sum() == len(source.stack)
        assert (program.source.stack[inside] >= 0).all()
    assert (program.source.stack[~np.isin(program.instructions["hlo"], kernels)] == -1).all()


@jit
def first_stores(x):
    """Twice x; of two cores, only the first stores, and the second works longer."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    if nl.program_id(0) == 0:
        nisa.dma_copy(dst=result, src=tile)
    else:
        for _ in range(100):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1.0)
    return result


def test_two_cores_under_jit(x):
    np.testing.assert_array_equal(jax.jit(lambda x: first_stores[2](x) + 1)(x), 2 * x + 1)


def test_what_uses_a_result_waits_for_a_core_that_stores_none_of_it(x):
    module = lower(str(jax.jit(lambda x: first_stores[2](x) + 1).lower(x).compiler_ir()).encode())
    program = compile_module(module, hardware.get("trn2"))
    times = simulate(program, hardware.get("trn2"))
    in_kernel = np.array([bool(operation.kernel) for operation in program.hlo])[program.instructions["hlo"]]
    assert times.end_ps[in_kernel].max() <= times.end_ps[~in_kernel & (program.instructions["dma"] < 0)].min()
